"""Who calls /v1: the site's people by their API keys, what they may do there, and what they have used."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from weakref import WeakValueDictionary

from django.contrib.auth.models import User
from django.db import Error, connections, transaction
from django.db.models.signals import post_delete, post_save
from django.utils import timezone

from agents.engine.closing import USAGE
from agents.engine.ledger import valid_text
from agents.passthrough.caller import Tokens
from agents.passthrough.errors import Refused
from conversations.accounts.counts import COUNTS
from conversations.accounts.keys import allows, key_from_header
from conversations.accounts.standing import Limits, Standing
from conversations.database.away import is_away
from conversations.database.busy import RETRY_SECONDS
from conversations.database.threads import DatabaseThread
from conversations.models import ApiKey, Quota, Scope

FRESH_SECONDS = 0.4
"""How long a key is known before the database is asked again.

What is under way asks every half second, and what is counted waits for counts.PAUSE_SECONDS: so another process's
revocation ends it, and another process's counts are known, within a second.
"""
AHEAD_SECONDS = 0.2
"""After this time a busy key is looked up beside its requests: under load a look-up takes a tenth of a second, because
its thread and the event loop have one interpreter."""
MODEL_LENGTH = 200
"""Characters of a model's name that are kept."""
TOKENS_MOST = 10**9
"""Tokens of one answer that are believed. More would not fit into the columns of sums."""
NO_KEY = (
    "Send one of your API keys of this site, as `Authorization: Bearer agk_...`. This one is unknown or has expired."
)
NO_SCOPE = "This API key may not be used here. Make one that may use the site\u2019s models, on your account page."
AWAY = "The site\u2019s database does not answer. Try again in a moment."

reader = DatabaseThread("passthrough-reader")
"""It looks keys up. Its connection stays open: whoever calls once will call again."""
reader.hold()


@dataclass(frozen=True, eq=False)
class KnownKey:
    """A key as the database had it a moment ago.

    `models`: those that it may use, by the provider's names; empty: all.
    """

    key: int
    models: frozenset[str]
    limits: Limits
    expiry: datetime | None
    standing: Standing


class SiteCaller:
    """The keys of this site.

    A key is looked up at most once within AHEAD_SECONDS, however many requests come with it. If a key, a person or a
    quota is changed in this process, all are looked up again at once; in another process, within FRESH_SECONDS.
    """

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases
        self._known: dict[bytes, tuple[float, KnownKey]] = {}  # by the hash of the header, oldest first
        self._renewing: set[bytes] = set()
        self._changes = 0
        self._standings: WeakValueDictionary[int, Standing] = WeakValueDictionary()
        for model in (ApiKey, User, Quota):
            post_save.connect(self._on_change, sender=model)  # weak references: they end with this object
            post_delete.connect(self._on_change, sender=model)

    async def authenticate(self, authorization: str) -> KnownKey:
        """Return the key in this header. Raises Refused."""
        digest = hashlib.sha256(authorization.encode("utf-8", "surrogatepass")).digest()
        if known := self._fresh(digest, FRESH_SECONDS):
            if self._fresh(digest, AHEAD_SECONDS) is None and digest not in self._renewing:
                self._renewing.add(digest)
                reader.run_later(self._renew, digest, authorization)
            return known
        try:
            # Those who ask for the same key meanwhile wait in the queue of the thread, and find it known.
            return await reader(self._look_up, digest, authorization, FRESH_SECONDS)
        except Error as error:
            raise Refused(503, "busy", AWAY, retry_after=RETRY_SECONDS) from error

    def person(self, who: KnownKey) -> int:
        """Return the id of the key's owner."""
        return who.standing.user

    def may(self, who: KnownKey, model: str) -> None:
        """Count a request. Raises Refused."""
        if not self.allows(who, model):
            raise Refused(403, "model_not_found", f"This API key may not use the model {model!r}.", param="model")
        with COUNTS.lock:
            place = who.standing.place(who.key, _kept(model), exists=False)
            who.standing.check(who.key, who.limits)
            who.standing.add(place, 1, 0)
            COUNTS.add_request(place)

    def allows(self, who: KnownKey, model: str) -> bool:
        """Whether this key may use this model."""
        return not who.models or not model or model in who.models

    def limited(self, who: KnownKey) -> bool:
        """Whether this key is for some models only."""
        return bool(who.models)

    def used(self, who: KnownKey, model: str, tokens: Tokens) -> None:
        """Count the tokens of an answer."""
        counts = {name: min(max(getattr(tokens, name), 0), TOKENS_MOST) for name in USAGE}
        believed = Tokens(**counts, estimated=tokens.estimated)
        if not believed.input_tokens + believed.output_tokens:
            return
        with COUNTS.lock:
            place = who.standing.place(who.key, _kept(model), exists=True)
            who.standing.add(place, 0, believed.input_tokens + believed.output_tokens)
            COUNTS.add_answer(place, believed)

    def _fresh(self, digest: bytes, seconds: float) -> KnownKey | None:
        since, known = self._known.get(digest, (0.0, None))
        if known is None or time.monotonic() - since > seconds:
            return None
        return known if known.expiry is None or known.expiry > timezone.now() else None

    def _renew(self, digest: bytes, authorization: str) -> None:
        """Look a busy key up before anybody has to wait for it."""
        try:
            self._look_up(digest, authorization, AHEAD_SECONDS)
        except Refused:
            with COUNTS.lock:
                self._known.pop(digest, None)  # whoever asks next is told
        except Error:
            pass  # perhaps the database answers before the key is no longer known
        finally:
            self._renewing.discard(digest)

    def _look_up(self, digest: bytes, authorization: str, seconds: float) -> KnownKey:
        if known := self._fresh(digest, seconds):
            return known
        since, changes = time.monotonic(), self._changes
        try:
            known = self._read(authorization)
        except Error as error:
            if not is_away(error):
                raise
            connections.close_all()  # the database may have been restarted, and be there again
            since, changes = time.monotonic(), self._changes
            known = self._read(authorization)
        with COUNTS.lock:
            if changes == self._changes:
                self._known.pop(digest, None)
                self._known[digest] = since, known
            for old in list(self._known):
                if since - self._known[old][0] <= FRESH_SECONDS:
                    break
                del self._known[old]
        return known

    def _read(self, authorization: str) -> KnownKey:
        key = key_from_header(authorization)
        if key is None:
            raise Refused(401, "invalid_api_key", NO_KEY)
        if not allows(key, Scope.PASSTHROUGH):
            raise Refused(403, "missing_scope", NO_SCOPE)
        standing = self._standings.get(key.user_id) or Standing(key.user_id)
        self._standings[key.user_id] = standing
        limits = Limits(key.requests_a_minute or 0, key.requests_a_day or 0, key.tokens_a_day or 0)
        standing.look(key.pk, limits, COUNTS)
        models = frozenset(self._aliases.get(name, name) for name in key.only_models)  # named as clients name them
        return KnownKey(key.pk, models, limits, key.expiry, standing)

    def _on_change(self, **_signal: object) -> None:
        transaction.on_commit(self._forget)

    def _forget(self) -> None:
        with COUNTS.lock:
            self._changes += 1
            self._known.clear()


def _kept(model: str) -> str:
    """Return the name of a model as the database takes it."""
    return valid_text(model[:MODEL_LENGTH])
