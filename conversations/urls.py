"""URLs of the pages, downloads and the health check."""

from django.contrib.auth.views import LogoutView, PasswordResetCompleteView, PasswordResetDoneView
from django.urls import path

from conversations.files import download
from conversations.pages import inspector, manage, theme
from conversations.pages.account import views as accounts
from conversations.pages.approvals import card, sheet
from conversations.pages.chat import source
from conversations.pages.chat import views as chat
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
    path("prompts/<int:pk>/cancel/", chat.stop, name="stop"),
    path("prompts/<int:pk>/continue/", chat.continue_turn, name="continue"),
    path("prompts/<int:pk>/again/", chat.repeat_turn, name="again"),
    path("c/<int:pk>/rename/", chat.rename_conversation, name="rename"),
    path("c/<int:pk>/archive/", manage.archive_view, name="archive"),
    path("c/<int:pk>/put-back/", manage.unarchive_view, name="put-back"),
    path("c/<int:pk>/delete/", manage.delete, name="delete"),
    path("c/<int:pk>/export/", manage.export, name="export"),
    path("c/<int:pk>/usage/", manage.usage, name="usage"),
    path("c/<int:pk>/decide/", sheet.sheet, name="sheet"),
    path("approvals/<int:pk>/decide/", card.decide, name="decide"),
    path("approvals/<int:pk>/card/", card.card, name="card"),
    path("files/<int:pk>/", download.download, name="download"),
    path("theme/", theme.choose, name="theme"),
    path("login/", accounts.SignIn.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("account/", accounts.account, name="account"),
    path("account/keys/", accounts.create_key, name="make-key"),
    path("account/keys/<int:pk>/revoke/", accounts.revoke_key, name="revoke-key"),
    path("account/sign-out-everywhere/", accounts.sign_out_everywhere, name="sign-out-everywhere"),
    path("account/password/", accounts.ChangeOwnPassword.as_view(), name="password_change"),
    path("password/", accounts.RequestPasswordReset.as_view(), name="password_reset"),
    path("password/sent/", PasswordResetDoneView.as_view(), name="password_reset_done"),
    path("password/<uidb64>/<token>/", accounts.ResetPassword.as_view(), name="password_reset_confirm"),
    path("password/changed/", PasswordResetCompleteView.as_view(), name="password_reset_complete"),
    path("healthz", healthz, name="healthz"),
]
