"""The ASGI app in front of the site: what is for the model server goes there, everything else to the site."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from typing import Generic
from urllib.parse import quote

from agents.passthrough import routes
from agents.passthrough.body import read, with_model
from agents.passthrough.caller import Caller, Who
from agents.passthrough.counting import Counter
from agents.passthrough.errors import Refused
from agents.passthrough.exchange import Exchange, Left, Message, Receive, Send, read_most
from agents.passthrough.headers import check_body, to_client, value_of
from agents.passthrough.listing import MOST, listed
from agents.passthrough.patrol import Patrol
from agents.passthrough.routes import Route
from agents.passthrough.upstream import FAILED, SILENT, Upstream

AT_ONCE = 400
"""Requests that may be on their way at a time: each takes two of the 1,024 files that a process may have open."""

PERSON_AT_ONCE = 200
"""Of these, requests of one person: nobody can take up all of them."""

IN_PARTS = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")
"""Headers of a client that may get it less than a whole list, which is read here before it passes."""
OF_ONE_LIST = (b"etag", b"last-modified")
"""Headers of a list that would not be true of the one that a client gets."""

logger = logging.getLogger(__name__)

App = Callable[..., Awaitable[None]]


class Passthrough(Generic[Who]):
    """The app. `elsewhere` answers what is not for the model server at `base_url`, whose key is `api_key`.

    `aliases`: the server's names of models by the names that clients may use as well. `https_only`: refuse what did not
    come through the proxy that handles HTTPS.
    """

    def __init__(
        self,
        elsewhere: App,
        caller: Caller[Who],
        *,
        base_url: str,
        api_key: str,
        aliases: Mapping[str, str],
        https_only: bool = False,
    ) -> None:
        self._elsewhere, self._caller, self._aliases = elsewhere, caller, aliases
        self._key, self._https_only = api_key, https_only
        self._upstream, self._patrol = Upstream(base_url, api_key), Patrol(caller.authenticate)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on (ASGI)."""
        if not routes.is_for_models(scope):
            await self._elsewhere(scope, receive, send)
            return
        exchange = Exchange(receive, send)
        try:
            await self._answer(routes.route(scope), scope, receive, exchange)
        except Left:
            pass
        except Refused as refused:
            await exchange.refuse(refused)
        except Exception:  # a mistake of ours: the client must not wait for ever
            logger.exception("a request to %s failed", scope["path"])
            await exchange.refuse(Refused(500, "internal_error", "Something went wrong on the site. It is in its log."))

    async def _answer(self, route: Route, scope: Message, receive: Receive, exchange: Exchange) -> None:
        headers = scope["headers"]
        # Of several proxies, the outermost wrote the first: so Django reads it, too.
        if self._https_only and value_of(headers, b"x-forwarded-proto").partition(",")[0].strip() != "https":
            raise Refused(403, "https_only", "Use https: over http, anybody on the way can read the key.")
        routes.check_query(scope["query_string"])
        authorization = next((value.decode("latin-1") for name, value in headers if name == b"authorization"), "")
        who = await self._caller.authenticate(authorization)
        body = await _body(receive)
        if self._patrol.count() >= AT_ONCE:
            raise Refused(503, "busy", "The site is passing on as many requests as it can.", retry_after=1)
        person = self._caller.person(who)
        if self._patrol.count_of(person) >= PERSON_AT_ONCE:
            said = f"You have {PERSON_AT_ONCE} requests under way, which is the limit. Wait for one of them to end."
            raise Refused(429, "rate_limit_exceeded", said, retry_after=1)
        asks = scope["method"] == "POST"
        work = self._ask(route, scope, body, who, exchange) if asks else self._look(route, scope, who, exchange)
        del body  # it may be large, and an answer takes long
        with self._patrol.watching(person, authorization, exchange):
            await exchange.run(work)

    async def _ask(self, route: Route, scope: Message, body: bytes, who: Who, exchange: Exchange) -> None:
        """Pass on a request to a model."""
        check_body(scope["headers"])
        asked = await read(body)
        body, model = with_model(body, asked, self._aliases)
        if asked.others and self._caller.limited(who):
            said = "This API key is for some models only, so a body may not name others, as `models` or `fallbacks`."
            raise Refused(403, "model_not_found", said)
        self._caller.may(who, model)
        counter, counts, left = Counter(len(body)), True, len(body)

        def sent(count: int) -> None:
            nonlocal left
            left -= count

        try:
            answer = await self._upstream.ask("POST", route.path, _query(scope), scope["headers"], body, sent=sent)
            del body
            counts = answer.status < FAILED
            with closing(answer):
                if counts:
                    await exchange.pass_back(answer, self._key, counter)
                else:
                    await exchange.pass_error_back(answer, self._key)
        except Refused as refused:
            counts = refused.status == SILENT  # it worked for all we know
            raise
        finally:
            if counts and left <= 0:  # else the server has only a part of it
                self._caller.used(who, model, counter.tokens())

    async def _look(self, route: Route, scope: Message, who: Who, exchange: Exchange) -> None:
        """Pass on a request for the list of models, or for what is known of one."""
        self._caller.may(who, "")
        model = self._aliases.get(route.model, route.model)
        if model and not self._caller.allows(who, model):
            raise Refused(404, "model_not_found", "There is no model of this name, or not for this key.", param="model")
        path = route.path if model == route.model else f"{routes.MODELS}/{quote(model, safe='')}"
        whole = [each for each in scope["headers"] if each[0] not in IN_PARTS]
        with closing(await self._upstream.ask("GET", path, _query(scope), whole)) as answer:
            if answer.status >= FAILED:
                await exchange.pass_error_back(answer, self._key)
                return
            body = await read_most(answer, MOST)
            if len(body) == MOST:
                raise Refused(502, "upstream_broken", "The model server's list of models is too long to be read.")
            if not route.model:
                everything = not self._caller.limited(who)
                body = listed(body, lambda name: self._caller.allows(who, name), self._aliases, everything=everything)
            headers = [each for each in to_client(answer.raw_headers, self._key) if each[0] not in OF_ONE_LIST]
            await exchange.whole(answer.status, headers, body)


def _query(scope: Message) -> str:
    query: bytes = scope["query_string"]
    return query.decode("latin-1")


async def _body(receive: Receive) -> bytes:
    """Return the whole body of a request. Raises Left."""
    pieces, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Left
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(pieces)
