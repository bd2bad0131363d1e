"""URLs of the WebSockets."""

from channels.routing import URLRouter
from django.urls import path, re_path

from conversations.push.consumers import ApprovalsSocket, ConversationSocket, Nowhere, PersonSocket

sockets = URLRouter(
    [
        path("ws/conversations/<int:pk>/", ConversationSocket.as_asgi()),
        path("ws/me/", PersonSocket.as_asgi()),
        path("ws/approvals/", ApprovalsSocket.as_asgi()),
        re_path("", Nowhere.as_asgi()),
    ]
)
