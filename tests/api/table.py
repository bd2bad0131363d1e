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
admin/search/                                                      LFFoooL   LFFoooL
admin/                                                             LFFoooL   LFFoooL
admin/login/                                                       LFF>>>L   LFF>>>L
admin/logout/                                                      >FFMMM>   >FF>>>>
admin/password_change/                                             >>>>>>>   >>>>>>>
admin/password_change/done/                                        LFFoooL   LFFMMML
admin/autocomplete/                                                LFFFFFL   LFFMMML
admin/jsi18n/                                                      LFFoooL   LFFMMML
admin/r/<path:content_type_id>/<path:object_id>/                   LFFNNNL   LFFNNNL
admin/conversations/approval/figures/                              LFFoFoL   LFFoFoL
admin/conversations/approval/together/                             LFFoooL   LFFwCwL
admin/conversations/approval/                                      LFFoooL   LFFoooL
admin/conversations/approval/add/                                  LFFFFFL   LFFFFFL
admin/conversations/approval/<path:object_id>/history/             LFFo>oL   LFFo>oL
admin/conversations/approval/<path:object_id>/delete/              LFFFFFL   LFFFFFL
admin/conversations/approval/<path:object_id>/change/              LFFoNoL   LFFwNwL
admin/conversations/approval/<path:object_id>/                     LFF>>>L   LFF>>>L
admin/conversations/grant/                                         LFFFFoL   LFFFFoL
admin/conversations/trigger/                                       LFFFFoL   LFFFFoL
admin/conversations/trigger/add/                                   LFFFFFL   LFFFFFL
admin/conversations/trigger/<path:object_id>/history/              LFFFFoL   LFFFFoL
admin/conversations/trigger/<path:object_id>/delete/               LFFFFoL   LFFFFoL
admin/conversations/trigger/<path:object_id>/change/               LFFFFoL   LFFFFFL
admin/conversations/trigger/<path:object_id>/                      LFF>>>L   LFF>>>L
admin/conversations/killswitch/                                    LFFFFoL   LFFFFwL
admin/conversations/apikey/                                        LFFFFoL   LFFFFoL
admin/conversations/apikey/<path:object_id>/delete/                LFFFFoL   LFFFFwL
admin/auth/user/<id>/password/                                     LFFFFoL   LFFFFoL
admin/auth/user/                                                   LFFFFoL   LFFFFoL
admin/auth/user/<int:pk>/erase/                                    LFFFFoL   LFFFF?L
admin/auth/user/add/                                               LFFFFoL   LFFFFoL
admin/auth/user/<path:object_id>/history/                          LFFFFoL   LFFFFoL
admin/auth/user/<path:object_id>/delete/                           LFFFFFL   LFFFFFL
admin/auth/user/<path:object_id>/change/                           LFFFFoL   LFFFFoL
admin/auth/user/<path:object_id>/                                  LFF>>>L   LFF>>>L
admin/auth/group/                                                  LFFFFoL   LFFFFoL
admin/auth/group/add/                                              LFFFFoL   LFFFFoL
admin/auth/group/<path:object_id>/history/                         LFFFFoL   LFFFFoL
admin/auth/group/<path:object_id>/delete/                          LFFFFoL   LFFFFoL
admin/auth/group/<path:object_id>/change/                          LFFFFoL   LFFFFoL
admin/auth/group/<path:object_id>/                                 LFF>>>L   LFF>>>L
admin/conversations/conversation/                                  LFFFFoL   LFFFFoL
admin/conversations/conversation/add/                              LFFFFFL   LFFFFFL
admin/conversations/conversation/<path:object_id>/history/         LFFFFoL   LFFFFoL
admin/conversations/conversation/<path:object_id>/delete/          LFFFFFL   LFFFFFL
admin/conversations/conversation/<path:object_id>/change/          LFFFFoL   LFFFFFL
admin/conversations/conversation/<path:object_id>/                 LFF>>>L   LFF>>>L
admin/conversations/prompt/                                        LFFFFoL   LFFFFoL
admin/conversations/prompt/add/                                    LFFFFFL   LFFFFFL
admin/conversations/prompt/<path:object_id>/history/               LFFFFoL   LFFFFoL
admin/conversations/prompt/<path:object_id>/delete/                LFFFFFL   LFFFFFL
admin/conversations/prompt/<path:object_id>/change/                LFFFFoL   LFFFFFL
admin/conversations/prompt/<path:object_id>/                       LFF>>>L   LFF>>>L
admin/conversations/output/                                        LFFFFoL   LFFFFoL
admin/conversations/output/add/                                    LFFFFFL   LFFFFFL
admin/conversations/output/<path:object_id>/history/               LFFFFoL   LFFFFoL
admin/conversations/output/<path:object_id>/delete/                LFFFFFL   LFFFFFL
admin/conversations/output/<path:object_id>/change/                LFFFFoL   LFFFFFL
admin/conversations/output/<path:object_id>/                       LFF>>>L   LFF>>>L
admin/conversations/step/                                          LFFFFoL   LFFFFoL
admin/conversations/step/<int:pk>/redact/                          LFFFFoL   LFFFF?L
admin/conversations/step/add/                                      LFFFFFL   LFFFFFL
admin/conversations/step/<path:object_id>/history/                 LFFFFoL   LFFFFoL
admin/conversations/step/<path:object_id>/delete/                  LFFFFFL   LFFFFFL
admin/conversations/step/<path:object_id>/change/                  LFFFFoL   LFFFFFL
admin/conversations/step/<path:object_id>/                         LFF>>>L   LFF>>>L
admin/conversations/file/                                          LFFFFoL   LFFFFoL
admin/conversations/file/add/                                      LFFFFFL   LFFFFFL
admin/conversations/file/<path:object_id>/history/                 LFFFFoL   LFFFFoL
admin/conversations/file/<path:object_id>/delete/                  LFFFFFL   LFFFFFL
admin/conversations/file/<path:object_id>/change/                  LFFFFoL   LFFFFFL
admin/conversations/file/<path:object_id>/                         LFF>>>L   LFF>>>L
admin/conversations/tooluse/                                       LFFFFoL   LFFFFoL
admin/conversations/tooluse/<str:tool>/                            LFFFFoL   LFFFFoL
admin/conversations/erasure/                                       LFFFFoL   LFFFFoL
admin/conversations/erasure/add/                                   LFFFFFL   LFFFFFL
admin/conversations/erasure/<path:object_id>/history/              LFFFFoL   LFFFFoL
admin/conversations/erasure/<path:object_id>/delete/               LFFFFFL   LFFFFFL
admin/conversations/erasure/<path:object_id>/change/               LFFFFoL   LFFFFFL
admin/conversations/erasure/<path:object_id>/                      LFF>>>L   LFF>>>L
admin/conversations/redaction/                                     LFFFFoL   LFFFFoL
admin/conversations/redaction/add/                                 LFFFFFL   LFFFFFL
admin/conversations/redaction/<path:object_id>/history/            LFFFFoL   LFFFFoL
admin/conversations/redaction/<path:object_id>/delete/             LFFFFFL   LFFFFFL
admin/conversations/redaction/<path:object_id>/change/             LFFFFoL   LFFFFFL
admin/conversations/redaction/<path:object_id>/                    LFF>>>L   LFF>>>L
admin/conversations/verification/                                  LFFFFoL   LFFFFoL
admin/conversations/verification/add/                              LFFFFFL   LFFFFFL
admin/conversations/verification/<path:object_id>/history/         LFFFFoL   LFFFFoL
admin/conversations/verification/<path:object_id>/delete/          LFFFFFL   LFFFFFL
admin/conversations/verification/<path:object_id>/change/          LFFFFoL   LFFFFFL
admin/conversations/verification/<path:object_id>/                 LFF>>>L   LFF>>>L
admin/agents/skill/                                                LFFFFoL   LFFFFoL
admin/agents/skill/add/                                            LFFFFoL   LFFFFoL
admin/agents/skill/<path:object_id>/history/                       LFFFFoL   LFFFFoL
admin/agents/skill/<path:object_id>/delete/                        LFFFFoL   LFFFFoL
admin/agents/skill/<path:object_id>/change/                        LFFFFoL   LFFFFoL
admin/agents/skill/<path:object_id>/                               LFF>>>L   LFF>>>L
admin/agents/suggestion/                                           LFFFFoL   LFFFFoL
admin/agents/suggestion/add/                                       LFFFFoL   LFFFFoL
admin/agents/suggestion/<path:object_id>/history/                  LFFFFoL   LFFFFoL
admin/agents/suggestion/<path:object_id>/delete/                   LFFFFoL   LFFFFoL
admin/agents/suggestion/<path:object_id>/change/                   LFFFFoL   LFFFFoL
admin/agents/suggestion/<path:object_id>/                          LFF>>>L   LFF>>>L
admin/agents/systemprompt/                                         LFFFFoL   LFFFFoL
admin/agents/systemprompt/<int:pk>/versions/                       LFFFFoL   LFFFF>L
admin/agents/systemprompt/<int:pk>/whole/                          LFFFFoL   LFFMMML
admin/agents/systemprompt/add/                                     LFFFFoL   LFFFFoL
admin/agents/systemprompt/<path:object_id>/history/                LFFFFoL   LFFFFoL
admin/agents/systemprompt/<path:object_id>/delete/                 LFFFFoL   LFFFFoL
admin/agents/systemprompt/<path:object_id>/change/                 LFFFFoL   LFFFFoL
admin/agents/systemprompt/<path:object_id>/                        LFF>>>L   LFF>>>L
admin/workflows/workflowsetting/                                   LFFFFoL   LFFFFoL
admin/workflows/workflowsetting/add/                               LFFFFoL   LFFFFoL
admin/workflows/workflowsetting/<path:object_id>/history/          LFFFFoL   LFFFFoL
admin/workflows/workflowsetting/<path:object_id>/delete/           LFFFFoL   LFFFFoL
admin/workflows/workflowsetting/<path:object_id>/change/           LFFFFoL   LFFFFoL
admin/workflows/workflowsetting/<path:object_id>/                  LFF>>>L   LFF>>>L
admin/^(?P<app_label>conversations|auth|agents|workflows)/$        LFFoooL   LFFoooL
admin/(?P<url>.*)$                                                 LFFNNNL   LFFNNNL
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
api/grants/                                                        Uoooooo   UMMMMMM
api/grants/<int:pk>/revoke/                                        UMMMMMM   UWNNNNN
api/approvals/decide/                                              UMMMMMM   UWoWoWo
api/approvals/<int:pk>/                                            UoNoNoN   UMMMMMM
api/approvals/<int:pk>/answer/                                     UMMMMMM   UWNWNWN
api/approvals/<int:pk>/approve/                                    UMMMMMM   UWNWNWN
api/approvals/<int:pk>/reject/                                     UMMMMMM   UWNWNWN
api/triggers/                                                      Uoooooo   UWWWWWW
api/triggers/<int:pk>/                                             UoNNNNN   UMMMMMM
api/triggers/<int:pk>/firings/                                     UoNNNNN   UMMMMMM
api/triggers/<int:pk>/pause/                                       UMMMMMM   UWNNNNN
api/triggers/<int:pk>/resume/                                      UMMMMMM   UWNNNNN
api/triggers/<int:pk>/run/                                         UMMMMMM   UWNNNNN
api/files/<int:pk>/                                                UoNNNNN   UMMMMMM
api/system-prompts/                                                Uoooooo   UMMMMMM
api/uploads/                                                       Uoooooo   UWWWWWW
api/uploads/<str:token>/                                           UMMMMMM   UMMMMMM
api/usage/                                                         Uoooooo   UMMMMMM
api/schema/                                                        Uoooooo   UMMMMMM
api/docs/                                                          LoooooL   LMMMMML
api/                                                               NNNNNNN   NNNNNNN
context/models                                                     UUUUUUF   UUUUUUF
context/chat/completions                                           UUUUUUF   UUUUUUF
v1/system-prompts/<int:pk>/enhanced                                Uoooooo   UMMMMMM
(home)                                                             LoooooL   LMMMMML
list/                                                              LoooooL   LMMMMML
new/                                                               LoooooL   LMMMMML
c/                                                                 MMMMMMM   LwwwwwL
c/<int:pk>/                                                        LoNNNNL   LMMMMML
c/<int:pk>/prompts/                                                MMMMMMM   LwNNNNL
prompts/<int:pk>/                                                  LoNNNNL   LMMMMML
prompts/<int:pk>/message/                                          LoNNNNL   LMMMMML
prompts/<int:pk>/texts/<int:position>/                             LoNNNNL   LMMMMML
prompts/<int:pk>/diagrams/<str:digest>.svg                         LoNNNNL   LMMMMML
prompts/<int:pk>/cancel/                                           MMMMMMM   LwNNNNL
prompts/<int:pk>/continue/                                         MMMMMMM   LwNNNNL
prompts/<int:pk>/again/                                            MMMMMMM   LwNNNNL
c/<int:pk>/rename/                                                 MMMMMMM   LwNNNNL
c/<int:pk>/system-prompt/                                          LoNNNNL   LwNNNNL
c/<int:pk>/archive/                                                MMMMMMM   LwNNNNL
c/<int:pk>/put-back/                                               MMMMMMM   LwNNNNL
c/<int:pk>/delete/                                                 LoNNNNL   LwNNNNL
c/<int:pk>/export/                                                 LoNNNNL   LMMMMML
c/<int:pk>/print/                                                  LoNNNNL   LMMMMML
c/<int:pk>/usage/                                                  LoNNNNL   LMMMMML
c/<int:pk>/images/<path:name>                                      LoNNNNL   LMMMMML
c/<int:pk>/decide/                                                 LoNNNNL   LwNNNNL
approvals/                                                         LoooooL   LMMMMML
approvals/together/                                                LoooooL   LwCwCwL
approvals/<int:pk>/                                                LoNoNoL   LwNwNwL
approvals/<int:pk>/decide/                                         MMMMMMM   LwNNNNL
approvals/<int:pk>/words/                                          MMMMMMM   LoNNNNL
approvals/<int:pk>/changes/                                        MMMMMMM   LoNoNoL
approvals/<int:pk>/card/                                           LoNNNNL   LMMMMML
files/<int:pk>/                                                    LoNNNNL   LMMMMML
files/<int:pk>/view/                                               LoNNNNL   LMMMMML
files/<int:pk>/frame/                                              LoNNNNL   LMMMMML
files/<int:pk>/image/                                              LoNNNNL   LMMMMML
files/<int:pk>/diagrams/<str:digest>.svg                           LoNNNNL   LMMMMML
theme/                                                             MMMMMMM   >>>>>>>
login/                                                             o>>>>>o   o>>>>>o
logout/                                                            MMMMMMM   >>>>>>>
account/                                                           LoooooL   LwwwwwL
account/keys/                                                      MMMMMMM   LWWWWWL
account/keys/<int:pk>/revoke/                                      MMMMMMM   LwNNNNL
account/notifications/                                             MMMMMMM   LwwwwwL
triggers/                                                          LoooooL   LwwwwwL
triggers/<int:pk>/                                                 LoNNNNL   LMMMMML
triggers/<int:pk>/run/                                             MMMMMMM   LwNNNNL
triggers/<int:pk>/pause/                                           MMMMMMM   LwNNNNL
triggers/<int:pk>/resume/                                          MMMMMMM   LwNNNNL
triggers/<int:pk>/delete/                                          MMMMMMM   LwNNNNL
account/grants/                                                    LoooooL   LMMMMML
account/grants/<int:pk>/revoke/                                    MMMMMMM   LwNNNNL
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
ws/approvals/                                                      Uoooooo
(nowhere)                                                          -------
"""
"""o: the socket stays open. U, F, N: it is closed with 4401, 4403, 4404. -: it is refused."""


def rows(table: str) -> dict[str, list[str]]:
    """Return the cells of a table by route; the first line is its heading."""
    lines = [line.split() for line in table.strip().splitlines()[1:]]
    return {route: cells for route, *cells in lines}
