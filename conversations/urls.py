"""URLs of the pages, downloads and the health check."""

from django.contrib.auth.views import LogoutView, PasswordResetCompleteView, PasswordResetDoneView
from django.urls import path

from conversations.files import download
from conversations.pages import inspector, manage, theme
from conversations.pages.account import grants, memory, webhooks
from conversations.pages.account import views as accounts
from conversations.pages.approvals import card, changes, sheet
from conversations.pages.approvals import views as approvals
from conversations.pages.chat import diagrams, source
from conversations.pages.chat import views as chat
from conversations.pages.files import views as files
from conversations.pages.printing.views import print_view
from conversations.triggers.hooks import receiving
from conversations.triggers.pages import changing as trigger_changing
from conversations.triggers.pages import hooks
from conversations.triggers.pages import views as triggers
from conversations.worker.health import healthz

urlpatterns = [
    path("", chat.home, name="home"),
    path("list/", chat.conversation_list, name="list"),
    path("new/", chat.new, name="new"),
    path("c/", chat.start, name="start"),
    path("c/<int:pk>/", chat.conversation, name="conversation"),
    path("c/<int:pk>/prompts/", chat.send, name="say"),
    path("prompts/<int:pk>/", inspector.inspector, name="inspector"),
    path("prompts/<int:pk>/message/", source.message, name="message"),
    path("prompts/<int:pk>/texts/<int:position>/", source.answer, name="text"),
    path("prompts/<int:pk>/diagrams/<str:digest>.svg", diagrams.of_prompt, name="diagram"),
    path("prompts/<int:pk>/cancel/", chat.stop, name="stop"),
    path("prompts/<int:pk>/continue/", chat.continue_turn, name="continue"),
    path("prompts/<int:pk>/again/", chat.repeat_turn, name="again"),
    path("c/<int:pk>/rename/", chat.rename_conversation, name="rename"),
    path("c/<int:pk>/system-prompt/", manage.choose_view, name="choose-system-prompt"),
    path("c/<int:pk>/archive/", manage.archive_view, name="archive"),
    path("c/<int:pk>/put-back/", manage.unarchive_view, name="put-back"),
    path("c/<int:pk>/delete/", manage.delete, name="delete"),
    path("c/<int:pk>/export/", manage.export, name="export"),
    path("c/<int:pk>/print/", print_view, name="print"),
    path("c/<int:pk>/usage/", manage.usage, name="usage"),
    path("c/<int:pk>/decide/", sheet.sheet, name="sheet"),
    path("approvals/", approvals.inbox, name="approvals"),
    path("approvals/together/", approvals.together, name="approvals-together"),
    path("approvals/<int:pk>/", approvals.approval, name="approval"),
    path("approvals/<int:pk>/decide/", card.decide, name="decide"),
    path("approvals/<int:pk>/card/", card.card, name="card"),
    path("approvals/<int:pk>/words/", card.grant_words, name="grant-words"),
    path("approvals/<int:pk>/changes/", changes.changes, name="changes"),
    path("c/<int:pk>/images/<path:name>", files.own_image, name="own-image"),
    path("files/<int:pk>/", download.download, name="download"),
    path("files/<int:pk>/view/", files.view, name="view-file"),
    path("files/<int:pk>/frame/", files.frame, name="file-frame"),
    path("files/<int:pk>/image/", files.image, name="file-image"),
    path("files/<int:pk>/diagrams/<str:digest>.svg", diagrams.of_file, name="file-diagram"),
    path("triggers/", triggers.triggers, name="triggers"),
    path("triggers/<int:pk>/", triggers.trigger, name="trigger"),
    path("triggers/<int:pk>/change/", trigger_changing.change, name="change-trigger"),
    *(
        path(f"triggers/<int:pk>/{what}/", triggers.do, {"what": what}, name=f"{what}-trigger")
        for what in ("run", "pause", "resume", "delete")
    ),
    path("triggers/<int:pk>/mapping/", hooks.mapping, name="map-trigger"),
    path("triggers/<int:pk>/secrets/", hooks.add_secret, name="add-hook-secret"),
    path("triggers/<int:pk>/secrets/<int:secret>/remove/", hooks.remove_secret, name="remove-hook-secret"),
    path("triggers/<int:pk>/firings/<int:firing>/again/", hooks.start_firing_again, name="start-firing-again"),
    path("hooks/<str:hook>/", receiving.receive, name="hook"),
    path("theme/", theme.choose, name="theme"),
    path("login/", accounts.SignIn.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("account/", accounts.account, name="account"),
    path("account/notifications/", accounts.choose_notifications, name="choose-notifications"),
    path("account/webhook/", webhooks.save, name="save-webhook"),
    path("account/webhook/secret/", webhooks.new_secret, name="renew-webhook"),
    path("account/webhook/test/", webhooks.test, name="test-webhook"),
    path("account/webhook/on/", webhooks.switch, {"on": True}, name="switch-webhook-on"),
    path("account/webhook/off/", webhooks.switch, {"on": False}, name="switch-webhook-off"),
    path("account/webhook/delete/", webhooks.delete, name="delete-webhook"),
    path("account/keys/", accounts.create_key, name="make-key"),
    path("account/keys/<int:pk>/revoke/", accounts.revoke_key, name="revoke-key"),
    path("account/grants/", grants.grants, name="grants"),
    path("account/grants/<int:pk>/revoke/", grants.revoke_grant, name="revoke-grant"),
    path("account/memory/", memory.memory, name="memory"),
    path("account/memory/<int:pk>/", memory.change_memory, name="change-memory"),
    path("account/memory/<int:pk>/pin/", memory.pin_memory, {"pinned": True}, name="pin-memory"),
    path("account/memory/<int:pk>/unpin/", memory.pin_memory, {"pinned": False}, name="unpin-memory"),
    path("account/memory/<int:pk>/forget/", memory.forget_memory, name="forget-memory"),
    path("account/memory/on/", memory.switch_memory, {"on": True}, name="switch-memory-on"),
    path("account/memory/off/", memory.switch_memory, {"on": False}, name="switch-memory-off"),
    path("account/sign-out-everywhere/", accounts.sign_out_everywhere, name="sign-out-everywhere"),
    path("account/password/", accounts.ChangeOwnPassword.as_view(), name="password_change"),
    path("password/", accounts.RequestPasswordReset.as_view(), name="password_reset"),
    path("password/sent/", PasswordResetDoneView.as_view(), name="password_reset_done"),
    path("password/<uidb64>/<token>/", accounts.ResetPassword.as_view(), name="password_reset_confirm"),
    path("password/changed/", PasswordResetCompleteView.as_view(), name="password_reset_complete"),
    path("healthz", healthz, name="healthz"),
]
