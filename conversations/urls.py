"""The addresses of the people's side."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from conversations.health import healthz
from conversations.pages import chat, files

urlpatterns = [
    path("", chat.home, name="home"),
    path("new/", chat.new, name="new"),
    path("c/", chat.start, name="start"),
    path("c/<int:pk>/", chat.conversation, name="conversation"),
    path("c/<int:pk>/prompts/", chat.say, name="say"),
    path("prompts/<int:pk>/cancel/", chat.stop, name="stop"),
    path("files/<int:pk>/", files.download, name="download"),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("healthz", healthz, name="healthz"),
]
