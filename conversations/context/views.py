"""The views of `/context`: the agent's answer as a chat completion, whole or streamed, and the list of its models."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.db import IntegrityError
from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from conversations.api.bodies import idempotency_key
from conversations.api.bodies import read as read_body
from conversations.api.errors import FAILED, RequestRefused
from conversations.api.events import HEADERS, release_thread
from conversations.api.views import Starts
from conversations.context import describe, shapes
from conversations.context.base import ContextView
from conversations.context.body import TIERS, Asked, ChatCompletionRequest, read_asked
from conversations.context.errors import deleted, refusal_of
from conversations.context.following import Followed, follow
from conversations.context.marks import ANSWER, mark, texts_digest
from conversations.context.outcome import Outcome, in_progress
from conversations.context.starting import turn_of
from conversations.context.transcript import Transcript
from conversations.database.threads import DatabaseThread
from conversations.models import ApiKey
from conversations.prompts.start import TurnInProgress
from conversations.push.access import SIGN_IN
from conversations.push.listener import ListeningEnded
from conversations.push.share import shares

logger = logging.getLogger(__name__)
RETRIES = "X-Stainless-Retry-Count"
"""The header in which OpenAI's own clients say how often they have sent a request before."""
ALIVE = b": still working\n\n"
"""A comment in a stream, which clients skip."""
DONE = b"data: [DONE]\n\n"

database = DatabaseThread("context")
"""It reads and starts what clients ask for: one transaction after the other, apart from what pages wait for."""


class Models(ContextView):
    """The models."""

    @describe.models
    def get(self, request: Request) -> Response:
        """List the tiers of the site's models, as models of the agent."""
        tiers = [shapes.TierModel(id=tier, object="model", created=0, owned_by="agentsite") for tier in TIERS]
        return Response(shapes.TierList(object="list", data=tiers))


@dataclass(frozen=True)
class Exchange:
    """A request that was taken: what it asks for, by which key, and the turn that answers it."""

    key: ApiKey
    asked: Asked
    turn: Followed

    @property
    def head(self) -> dict[str, Any]:
        """What every answer and every piece of one begins with."""
        prompt = self.turn.prompt
        return {
            "id": f"chatcmpl-{prompt.pk}",
            "created": int(prompt.created_at.timestamp()),
            "model": prompt.tier,
            "metadata": shapes.Place(conversation=str(prompt.conversation_id), prompt=str(prompt.pk)),
        }

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer."""
        prompt = self.turn.prompt
        named = {"X-Conversation": str(prompt.conversation_id), "X-Prompt": str(prompt.pk)}
        return named | ({"X-Ignored": ", ".join(self.asked.ignored)} if self.asked.ignored else {})

    def transcript(self) -> Transcript:
        """Return an empty transcript for the answer."""
        return Transcript(self.turn.site, formed="form" in self.turn.prompt.from_client)

    def keep(self, answer: str) -> None:
        """Remember what the client has now, so that its next message finds the conversation.

        Raises ListeningEnded if the key has just been revoked, and RequestRefused if the turn was deleted.
        """
        try:
            mark(self.key, self.turn.prompt, ANSWER, texts_digest([*self.asked.texts, ("assistant", answer)]))
        except IntegrityError as error:
            if ApiKey.objects.filter(pk=self.key.pk).exists():
                raise deleted() from error
            raise ListeningEnded(SIGN_IN) from error


class ChatCompletions(ContextView):
    """The agent's answer to a message. It is asynchronous, which the REST framework's own `dispatch` is not."""

    async def dispatch(self, request: HttpRequest) -> HttpResponseBase:
        """Answer a request, also one that is refused."""
        exchange: Exchange | None = None
        try:
            asking = await database(self.admit, request)
            with shares.held(asking.auth.user_id):  # who is refused for want of room has started nothing
                exchange = await database(self.take, asking)
            release_thread()
            return await self.post(exchange)
        except Exception as error:
            if (refused := refusal_of(error)) is None:
                raise
            response = refused.for_openai()
            if refused.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
                response.headers["Allow"] = "POST"
            for name, value in (exchange.headers if exchange else {}).items():
                response.headers[name] = value
            return response

    def admit(self, request: HttpRequest) -> Request:
        """Authenticate and rate-limit a request like the rest of the API. Raises an APIException."""
        asking = self.initialize_request(request)
        self.initial(asking)
        if request.method != "POST":
            self.http_method_not_allowed(asking)
        return asking

    def take(self, asking: Request) -> Exchange:
        """Start the turn that a request asks for. Raises RequestRefused, APIException, and what start_prompt raises."""
        site = asking.build_absolute_uri("/").rstrip("/")
        body = read_body(asking, ChatCompletionRequest)
        asked = read_asked(body, asking.data["messages"], asking.headers.get("X-Conversation"))
        if asked.prompt is None and not (starts := Starts()).allow_request(asking, self):
            self.throttled(asking, starts.wait())
        again = asking.headers.get(RETRIES, "0") not in ("", "0")
        try:
            turn = turn_of(asking.auth, asked, idempotency_key(asking), again=again)
        except TurnInProgress as error:
            raise in_progress(error, site) from error
        return Exchange(asking.auth, asked, Followed.of(turn, asking.auth, site))

    @describe.chat_completions
    async def post(self, exchange: Exchange) -> HttpResponseBase:
        """Have the agent answer the last message, with its tools and its approvals. See docs/context.md."""
        if exchange.asked.stream:
            pieces = _stream(exchange)
            headers = HEADERS | exchange.headers
            return StreamingHttpResponse(pieces, content_type="text/event-stream", headers=headers)
        return await _whole(exchange)


async def _whole(exchange: Exchange) -> JsonResponse:
    transcript = exchange.transcript()
    async for each in follow(exchange.turn, transcript, exchange.asked.wait):
        if isinstance(each, Outcome):
            stands = each
    if stands.error:
        raise stands.error
    await database(exchange.keep, transcript.text)
    answer = shapes.ChatCompletion(
        object="chat.completion",
        choices=[
            shapes.Choice(
                index=0,
                message=shapes.AnswerMessage(role="assistant", content=transcript.text, refusal=None),
                logprobs=None,
                finish_reason=stands.finish,
            )
        ],
        usage=stands.usage,
        approval=stands.approval,
        **exchange.head,
    )
    return JsonResponse(answer.json_value(), headers=exchange.headers)


async def _stream(exchange: Exchange) -> AsyncIterator[bytes]:
    """Yield the answer as server-sent events. An error after the beginning is an event, too, and ends the stream."""
    try:
        async for piece in _pieces(exchange):
            yield piece
    except Exception as error:
        refused = refusal_of(error)
        if refused is None:
            logger.exception("the answer of turn %s broke off", exchange.turn.prompt.pk)
            refused = RequestRefused(500, "internal_error", FAILED)
        yield b"data: " + refused.for_openai().content + b"\n\n"


async def _pieces(exchange: Exchange) -> AsyncIterator[bytes]:
    """Yield the answer as server-sent events. Raises what ends a turn without an answer."""
    transcript = exchange.transcript()
    yield _chunk(exchange, {"role": "assistant", "content": ""})
    async for each in follow(exchange.turn, transcript, exchange.asked.wait):
        if not isinstance(each, Outcome):
            yield _chunk(exchange, {"content": each}) if each else ALIVE
            continue
        if each.error:
            raise each.error
        await database(exchange.keep, transcript.sent)
        yield _chunk(exchange, {}, each.finish, approval=each.approval)
        if exchange.asked.include_usage:
            yield _chunk(exchange, None, usage=each.usage)
        yield DONE


def _chunk(exchange: Exchange, delta: dict[str, str] | None, finish: str | None = None, **more: Any) -> bytes:
    """Return a piece of the answer; `delta` None: one without a choice, which has the usage."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    piece = shapes.ChatCompletionChunk(object="chat.completion.chunk", choices=choices, **exchange.head, **more)
    return f"data: {piece.text_value()}\n\n".encode()
