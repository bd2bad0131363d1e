"""URLs of the WebSockets."""

from channels.routing import URLRouter
from django.urls import path, re_path

from conversations.push.consumers import ApprovalsSocket, ConversationSocket, PersonSocket, UnknownSocket

sockets = URLRouter(
    [
        path("ws/conversations/<int:pk>/", ConversationSocket.as_asgi()),
        path("ws/me/", PersonSocket.as_asgi()),
        path("ws/approvals/", ApprovalsSocket.as_asgi()),
        re_path("", UnknownSocket.as_asgi()),
    ]
)
