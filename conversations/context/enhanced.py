"""`GET /v1/system-prompts/<id>/enhanced`: the whole prompt of the caller's own agent (S65)."""

from __future__ import annotations

import logging

from rest_framework.request import Request
from rest_framework.response import Response

from agents.models import SystemPrompt
from conversations.api.errors import RequestRefused
from conversations.context import describe, shapes
from conversations.context.base import MayReadPrompt, OpenAIView
from conversations.prompts.whole_prompt import PROTOCOLS, whole_prompt

logger = logging.getLogger(__name__)
NOT_FOUND = "There is no such system prompt. GET /api/system-prompts/ lists those that can be chosen."
FAILED = "A plugin of the site cannot say what it adds to a turn before one begins. The site's log says why."


class Enhanced(OpenAIView):
    """A system prompt with everything that the agent is told besides."""

    permission_classes = [MayReadPrompt]

    @describe.enhanced
    def get(self, request: Request, pk: int) -> Response:
        """Return what your agent is told before the messages of a new conversation with this system prompt.

        It is made by the function that makes each round of a turn: the text with its variables filled in, what each
        plugin adds, and the tools that are offered at first, by category.
        """
        protocol = next((each for each in PROTOCOLS if each == request.query_params.get("protocol", "native")), None)
        if protocol is None:
            why = f"The protocol is one of: {', '.join(PROTOCOLS)}."
            raise RequestRefused(400, "unknown_protocol", why, param="protocol")
        found = SystemPrompt.objects.filter(pk=pk).first()
        if found is None:
            raise RequestRefused(404, "system_prompt_not_found", NOT_FOUND)
        try:
            whole = whole_prompt(found.latest(), request.user, protocol)
        except Exception as error:
            logger.exception("the whole prompt cannot be made")
            raise RequestRefused(503, "plugin_failed", FAILED) from error
        return Response(shapes.EnhancedPrompt.of(found, whole))
