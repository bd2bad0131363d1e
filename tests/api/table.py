"""Who gets what at each address: the table that tests/api/test_matrix.py holds the site against.

A letter stands for the answer to each of the ROLES in their order: anonymous, owner, other, decider, staff, admin, key.

    o  done or shown (2xx)          W  done, and something was written
    >  sent on (302)                w  sent on, and something was written
    L  sent to the login page       U  401: nobody is known
    ?  400: what was sent           F  403: known, and not allowed
    N  404: it is not theirs        M  405: no such method
    C  409: it is not so            S  503: the site has no worker, which healthz says
"""

ADDRESSES = """
route                                                              GET       POST
admin/search/                                                      LLLoooL   LLLoooL
admin/                                                             LLLoooL   LLLoooL
admin/login/                                                       ooo>>>o   ooooooo
admin/logout/                                                      >>>MMM>   >>>>>>>
admin/password_change/                                             >>>>>>>   >>>>>>>
admin/password_change/done/                                        LLLoooL   LLLMMML
admin/autocomplete/                                                LLLFFFL   LLLMMML
admin/jsi18n/                                                      LLLoooL   LLLMMML
admin/r/<path:content_type_id>/<path:object_id>/                   LLLNNNL   LLLNNNL
admin/conversations/approval/together/                             LLLoooL   LLLwCwL
admin/conversations/approval/                                      LLLoooL   LLLoooL
admin/conversations/approval/add/                                  LLLFFFL   LLLFFFL
admin/conversations/approval/<path:object_id>/history/             LLLo>oL   LLLo>oL
admin/conversations/approval/<path:object_id>/delete/              LLLFFFL   LLLFFFL
admin/conversations/approval/<path:object_id>/change/              LLLoNoL   LLLwNwL
admin/conversations/approval/<path:object_id>/                     LLL>>>L   LLL>>>L
admin/conversations/killswitch/                                    LLLFFoL   LLLFFwL
admin/conversations/apikey/                                        LLLFFoL   LLLFFoL
admin/conversations/apikey/<path:object_id>/delete/                LLLFFoL   LLLFFwL
admin/auth/user/<id>/password/                                     LLLFFoL   LLLFFoL
admin/auth/user/                                                   LLLFFoL   LLLFFoL
admin/auth/user/<int:pk>/erase/                                    LLLFFoL   LLLFF?L
admin/auth/user/add/                                               LLLFFoL   LLLFFoL
admin/auth/user/<path:object_id>/history/                          LLLFFoL   LLLFFoL
admin/auth/user/<path:object_id>/delete/                           LLLFFFL   LLLFFFL
admin/auth/user/<path:object_id>/change/                           LLLFFoL   LLLFFoL
admin/auth/user/<path:object_id>/                                  LLL>>>L   LLL>>>L
admin/auth/group/                                                  LLLFFoL   LLLFFoL
admin/auth/group/add/                                              LLLFFoL   LLLFFoL
admin/auth/group/<path:object_id>/history/                         LLLFFoL   LLLFFoL
admin/auth/group/<path:object_id>/delete/                          LLLFFoL   LLLFFoL
admin/auth/group/<path:object_id>/change/                          LLLFFoL   LLLFFoL
admin/auth/group/<path:object_id>/                                 LLL>>>L   LLL>>>L
admin/conversations/conversation/                                  LLLFFoL   LLLFFoL
admin/conversations/conversation/add/                              LLLFFFL   LLLFFFL
admin/conversations/conversation/<path:object_id>/history/         LLLFFoL   LLLFFoL
admin/conversations/conversation/<path:object_id>/delete/          LLLFFFL   LLLFFFL
admin/conversations/conversation/<path:object_id>/change/          LLLFFoL   LLLFFFL
admin/conversations/conversation/<path:object_id>/                 LLL>>>L   LLL>>>L
admin/conversations/prompt/                                        LLLFFoL   LLLFFoL
admin/conversations/prompt/add/                                    LLLFFFL   LLLFFFL
admin/conversations/prompt/<path:object_id>/history/               LLLFFoL   LLLFFoL
admin/conversations/prompt/<path:object_id>/delete/                LLLFFFL   LLLFFFL
admin/conversations/prompt/<path:object_id>/change/                LLLFFoL   LLLFFFL
admin/conversations/prompt/<path:object_id>/                       LLL>>>L   LLL>>>L
admin/conversations/output/                                        LLLFFoL   LLLFFoL
admin/conversations/output/add/                                    LLLFFFL   LLLFFFL
admin/conversations/output/<path:object_id>/history/               LLLFFoL   LLLFFoL
admin/conversations/output/<path:object_id>/delete/                LLLFFFL   LLLFFFL
admin/conversations/output/<path:object_id>/change/                LLLFFoL   LLLFFFL
admin/conversations/output/<path:object_id>/                       LLL>>>L   LLL>>>L
admin/conversations/step/                                          LLLFFoL   LLLFFoL
admin/conversations/step/<int:pk>/redact/                          LLLFFoL   LLLFF?L
admin/conversations/step/add/                                      LLLFFFL   LLLFFFL
admin/conversations/step/<path:object_id>/history/                 LLLFFoL   LLLFFoL
admin/conversations/step/<path:object_id>/delete/                  LLLFFFL   LLLFFFL
admin/conversations/step/<path:object_id>/change/                  LLLFFoL   LLLFFFL
admin/conversations/step/<path:object_id>/                         LLL>>>L   LLL>>>L
admin/conversations/file/                                          LLLFFoL   LLLFFoL
admin/conversations/file/add/                                      LLLFFFL   LLLFFFL
admin/conversations/file/<path:object_id>/history/                 LLLFFoL   LLLFFoL
admin/conversations/file/<path:object_id>/delete/                  LLLFFFL   LLLFFFL
admin/conversations/file/<path:object_id>/change/                  LLLFFoL   LLLFFFL
admin/conversations/file/<path:object_id>/                         LLL>>>L   LLL>>>L
admin/conversations/erasure/                                       LLLFFoL   LLLFFoL
admin/conversations/erasure/add/                                   LLLFFFL   LLLFFFL
admin/conversations/erasure/<path:object_id>/history/              LLLFFoL   LLLFFoL
admin/conversations/erasure/<path:object_id>/delete/               LLLFFFL   LLLFFFL
admin/conversations/erasure/<path:object_id>/change/               LLLFFoL   LLLFFFL
admin/conversations/erasure/<path:object_id>/                      LLL>>>L   LLL>>>L
admin/conversations/redaction/                                     LLLFFoL   LLLFFoL
admin/conversations/redaction/add/                                 LLLFFFL   LLLFFFL
admin/conversations/redaction/<path:object_id>/history/            LLLFFoL   LLLFFoL
admin/conversations/redaction/<path:object_id>/delete/             LLLFFFL   LLLFFFL
admin/conversations/redaction/<path:object_id>/change/             LLLFFoL   LLLFFFL
admin/conversations/redaction/<path:object_id>/                    LLL>>>L   LLL>>>L
admin/conversations/verification/                                  LLLFFoL   LLLFFoL
admin/conversations/verification/add/                              LLLFFFL   LLLFFFL
admin/conversations/verification/<path:object_id>/history/         LLLFFoL   LLLFFoL
admin/conversations/verification/<path:object_id>/delete/          LLLFFFL   LLLFFFL
admin/conversations/verification/<path:object_id>/change/          LLLFFoL   LLLFFFL
admin/conversations/verification/<path:object_id>/                 LLL>>>L   LLL>>>L
admin/agents/skill/                                                LLLFFoL   LLLFFoL
admin/agents/skill/add/                                            LLLFFoL   LLLFFoL
admin/agents/skill/<path:object_id>/history/                       LLLFFoL   LLLFFoL
admin/agents/skill/<path:object_id>/delete/                        LLLFFoL   LLLFFoL
admin/agents/skill/<path:object_id>/change/                        LLLFFoL   LLLFFoL
admin/agents/skill/<path:object_id>/                               LLL>>>L   LLL>>>L
admin/agents/systemprompt/                                         LLLFFoL   LLLFFoL
admin/agents/systemprompt/add/                                     LLLFFoL   LLLFFoL
admin/agents/systemprompt/<path:object_id>/history/                LLLFFoL   LLLFFoL
admin/agents/systemprompt/<path:object_id>/delete/                 LLLFFoL   LLLFFoL
admin/agents/systemprompt/<path:object_id>/change/                 LLLFFoL   LLLFFoL
admin/agents/systemprompt/<path:object_id>/                        LLL>>>L   LLL>>>L
admin/workflows/workflowsetting/                                   LLLFFoL   LLLFFoL
admin/workflows/workflowsetting/add/                               LLLFFoL   LLLFFoL
admin/workflows/workflowsetting/<path:object_id>/history/          LLLFFoL   LLLFFoL
admin/workflows/workflowsetting/<path:object_id>/delete/           LLLFFoL   LLLFFoL
admin/workflows/workflowsetting/<path:object_id>/change/           LLLFFoL   LLLFFoL
admin/workflows/workflowsetting/<path:object_id>/                  LLL>>>L   LLL>>>L
admin/^(?P<app_label>conversations|auth|agents|workflows)/$        LLLoooL   LLLoooL
admin/(?P<url>.*)$                                                 LLLNNNL   LLLNNNL
workflows/                                                         LoooooL   LMMMMML
workflow-menu/                                                     LoooooL   LMMMMML
workflows/runs/                                                    LoooooL   LMMMMML
workflows/runs/<int:pk>/star/                                      MMMMMMM   LwNNNNL
workflows/<str:name>/                                              LoooooL   LwwwwwL
workflows/<str:name>/star/                                         MMMMMMM   LwwwwwL
workflows/<str:name>/upload/                                       MMMMMMM   LNNNNNL
workflows/<str:name>/batch/                                        LoooooL   LoooooL
workflows/<str:name>/batch/template.csv                            LoooooL   LMMMMML
workflows/batches/                                                 LoooooL   LMMMMML
workflows/batches/<int:pk>/                                        LoNNNNL   LMMMMML
workflows/batches/<int:pk>/stop/                                   MMMMMMM   LwNNNNL
workflows/batches/<int:pk>/delete/                                 LoNNNNL   LwNNNNL
workflows/batches/<int:pk>/results.csv                             LoNNNNL   LMMMMML
workflows/<str:name>/in/<int:pk>/                                  LoNNNNL   LMMMMML
workflows/<str:name>/fill/                                         MMMMMMM   LwwwwwL
workflows/<str:name>/filled/<int:pk>/                              LoNNNNL   LwNNNNL
workflows/<str:name>/runs/                                         LoooooL   LMMMMML
workflows/<str:name>/runs/<int:pk>/again/                          LoNNNNL   LMMMMML
workflows/categories                                               Uoooooo   UMMMMMM
api/workflows/                                                     Uoooooo   UMMMMMM
api/workflows/categories/                                          Uoooooo   UMMMMMM
api/workflows/runs/                                                Uoooooo   UMMMMMM
api/workflows/<str:name>/                                          Uoooooo   UMMMMMM
api/workflows/<str:name>/runs/                                     Uoooooo   UMMMMMM
api/workflows/<str:name>/batch/                                    UMMMMMM   UWWWWWW
api/workflows/batches/                                             Uoooooo   UMMMMMM
api/workflows/batches/<int:pk>/                                    UoNNNNN   UMMMMMM
api/workflows/batches/<int:pk>/stop/                               UMMMMMM   UWNNNNN
api/workflows/<str:name>/run/                                      UMMMMMM   UWWWWWW
api/conversations/                                                 Uoooooo   UWWWWWW
api/conversations/<int:pk>/                                        UoNNNNN   UMMMMMM
api/conversations/<int:pk>/events/                                 UoNNNNN   MMMMMMM
api/conversations/<int:pk>/prompts/                                UoNNNNN   UWNNNNN
api/prompts/<int:pk>/                                              UoNNNNN   UMMMMMM
api/prompts/<int:pk>/events/                                       UoNNNNN   MMMMMMM
api/prompts/<int:pk>/steps/                                        UoNNNNN   UMMMMMM
api/prompts/<int:pk>/outputs/                                      UoNNNNN   UMMMMMM
api/prompts/<int:pk>/cancel/                                       UMMMMMM   UWNNNNN
api/prompts/<int:pk>/continue/                                     UMMMMMM   UWNNNNN
api/prompts/<int:pk>/again/                                        UMMMMMM   UWNNNNN
api/approvals/                                                     Uoooooo   UMMMMMM
api/approvals/decide/                                              UMMMMMM   UWoWoWo
api/approvals/<int:pk>/                                            UoNoNoN   UMMMMMM
api/approvals/<int:pk>/answer/                                     UMMMMMM   UWNWNWN
api/approvals/<int:pk>/approve/                                    UMMMMMM   UWNWNWN
api/approvals/<int:pk>/reject/                                     UMMMMMM   UWNWNWN
api/files/<int:pk>/                                                UoNNNNN   UMMMMMM
api/uploads/                                                       Uoooooo   UWWWWWW
api/uploads/<str:token>/                                           UMMMMMM   UMMMMMM
api/usage/                                                         Uoooooo   UMMMMMM
api/schema/                                                        Uoooooo   UMMMMMM
api/docs/                                                          LoooooL   LMMMMML
api/                                                               NNNNNNN   NNNNNNN
(home)                                                             LoooooL   LMMMMML
list/                                                              LoooooL   LMMMMML
new/                                                               LoooooL   LMMMMML
c/                                                                 MMMMMMM   LwwwwwL
c/<int:pk>/                                                        LoNNNNL   LMMMMML
c/<int:pk>/prompts/                                                MMMMMMM   LwNNNNL
prompts/<int:pk>/                                                  LoNNNNL   LMMMMML
prompts/<int:pk>/cancel/                                           MMMMMMM   LwNNNNL
prompts/<int:pk>/continue/                                         MMMMMMM   LwNNNNL
prompts/<int:pk>/again/                                            MMMMMMM   LwNNNNL
c/<int:pk>/rename/                                                 MMMMMMM   LwNNNNL
c/<int:pk>/archive/                                                MMMMMMM   LwNNNNL
c/<int:pk>/put-back/                                               MMMMMMM   LwNNNNL
c/<int:pk>/delete/                                                 LoNNNNL   LwNNNNL
c/<int:pk>/export/                                                 LoNNNNL   LMMMMML
c/<int:pk>/usage/                                                  LoNNNNL   LMMMMML
c/<int:pk>/decide/                                                 LoNNNNL   LwNNNNL
approvals/<int:pk>/decide/                                         MMMMMMM   LwNNNNL
approvals/<int:pk>/card/                                           LoNNNNL   LMMMMML
files/<int:pk>/                                                    LoNNNNL   LMMMMML
theme/                                                             MMMMMMM   >>>>>>>
login/                                                             o>>>>>o   o>>>>>o
logout/                                                            MMMMMMM   >>>>>>>
account/                                                           LoooooL   LwwwwwL
account/keys/                                                      MMMMMMM   LWWWWWL
account/keys/<int:pk>/revoke/                                      MMMMMMM   LwNNNNL
account/sign-out-everywhere/                                       MMMMMMM   L>>>>>L
account/password/                                                  LoooooL   LoooooL
password/                                                          ooooooo   ooooooo
password/sent/                                                     ooooooo   MMMMMMM
password/<uidb64>/<token>/                                         ooooooo   ooooooo
password/changed/                                                  ooooooo   MMMMMMM
healthz                                                            SSSSSSS   SSSSSSS
"""

SOCKETS = """
route                                                              opened
ws/conversations/<int:pk>/                                         UoNNNNN
ws/me/                                                             Uoooooo
ws/approvals/                                                      UFFoooF
(nowhere)                                                          -------
"""
"""o: the socket stays open. U, F, N: it is closed with 4401, 4403, 4404. -: it is refused."""


def rows(table: str) -> dict[str, list[str]]:
    """Return the cells of a table by route; the first line is its heading."""
    lines = [line.split() for line in table.strip().splitlines()[1:]]
    return {route: cells for route, *cells in lines}
