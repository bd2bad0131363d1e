"""The URLs of `/context`, and the one under `/v1`. They have no slash at the end: OpenAI's clients ask for them so."""

from django.urls import path

from conversations.context.enhanced import Enhanced
from conversations.context.views import ChatCompletions, Models

urlpatterns = [
    path("context/models", Models.as_view(), name="context-models"),
    path("context/chat/completions", ChatCompletions.as_view(), name="context-chat-completions"),
    path("v1/system-prompts/<int:pk>/enhanced", Enhanced.as_view(), name="enhanced"),
]
