"""What nobody may read: the site's own secrets (C20), and those that a run was given, in that run only.

They are kept out of ledgers, models and logs, wherever they come from. A run's secrets are no secrets elsewhere: a
short password is an ordinary word in somebody else's chat, and hiding it there would tell them that it is one.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import quote, quote_plus

from agents.engine.ledger import JSON

HIDDEN = "[secret]"
"""The text that replaces a secret."""
SHORTEST = 12
"""The shortest text, in characters, that is treated as a secret of the site: shorter ones (`postgres`) are often
ordinary words."""
SHORTEST_OF_RUN = 4
"""The shortest secret of a run that is hidden in it, in characters: shorter ones stand in too many words."""
REFERENCE = "$secret"
"""The one key of the object that stands in place of a run's secret: `{"$secret": "password"}`."""

_known: list[str] = []


def keep_secret(texts: Iterable[str]) -> None:
    """Set the site's secrets to hide, replacing the earlier ones. Texts shorter than SHORTEST are ignored."""
    _known[:] = _longest_first(form for text in texts if len(text) >= SHORTEST for form in _encodings(text))


def _longest_first(forms: Iterable[str]) -> list[str]:
    return sorted(set(forms), key=len, reverse=True)


def _encodings(text: str) -> Iterator[str]:
    """Yield a secret as it is, and as it is written in JSON, in JSON within JSON, in a URL, in HTML and by Python."""
    yield text
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    yield quote(text)
    yield quote(text, safe="")
    yield quote_plus(text)
    yield html.escape(text)
    yield repr(text)[1:-1]


class RunSecrets:
    """The secrets of one run, by the field of its input. They are hidden in whatever happens within `hidden()`."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.fields: set[str] = set()
        self.forms: list[str] = []
        self.add(values or {})

    def add(self, values: Mapping[str, str]) -> None:
        """Hide these as well. Values shorter than SHORTEST_OF_RUN are not hidden."""
        self.fields.update(values)
        long = (value for value in values.values() if len(value) >= SHORTEST_OF_RUN)
        self.forms = _longest_first([*self.forms, *(form for value in long for form in _encodings(value))])

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide them in this block: in its task, and in the tasks and tool threads that it starts."""
        token = _of_run.set((*_of_run.get(), self))
        try:
            yield
        finally:
            _of_run.reset(token)


_of_run: ContextVar[tuple[RunSecrets, ...]] = ContextVar("secrets of the run", default=())


def _forms_of_run() -> list[str]:
    return [form for each in _of_run.get() for form in each.forms]


def _forms() -> Sequence[str]:
    """Return all texts to hide here, the longest first."""
    of_run = _forms_of_run()
    return _longest_first([*_known, *of_run]) if of_run else _known


def hide(text: str) -> str:
    """Return the text with every secret replaced."""
    return _replaced(text, _forms())


def _replaced(text: str, forms: Sequence[str]) -> str:
    """Replace these texts. What was hidden before stays as it is: "secret" may be somebody's secret, too."""
    for secret in forms:
        if secret in text:
            pieces = [text] if HIDDEN in secret else text.split(HIDDEN)
            text = HIDDEN.join(piece.replace(secret, HIDDEN) for piece in pieces)
    return text


def hide_in(value: JSON, *, keys: bool = False) -> JSON:
    """Replace secrets in every text of a JSON value.

    Keys are included, because those of a tool's result may come from anywhere; the engine's own never hold secrets of
    the site. Those of a run may be ordinary words, so they are hidden in keys only if `keys` is true: where no program
    finds its way by them. References to them stay.
    """
    of_run = _of_run.get()
    fields = frozenset(field for each in of_run for field in each.fields)
    forms = _forms()
    return _replaced_in(value, forms, forms if keys else _known, fields)


def _replaced_in(value: JSON, forms: Sequence[str], in_keys: Sequence[str], fields: frozenset[str]) -> JSON:
    if isinstance(value, str):
        return _replaced(value, forms)
    if isinstance(value, list):
        return [_replaced_in(item, forms, in_keys, fields) for item in value]
    if isinstance(value, dict):
        if is_reference(value) and value[REFERENCE] in fields:
            return dict(value)
        return {
            key if key in fields else _replaced_in(key, in_keys, in_keys, fields): _replaced_in(
                item, forms, in_keys, fields
            )
            for key, item in value.items()
        }
    return value


def partial_secret_length(text: str) -> int:
    """Return how many characters at the end of a text could be the beginning of a secret that continues after it."""
    forms = _forms()
    longest = len(forms[0]) - 1 if forms else 0
    ends = (text[start:] for start in range(max(0, len(text) - longest), len(text)))
    return next((len(end) for end in ends if any(secret.startswith(end) for secret in forms)), 0)


# References


def reference(field: str) -> dict[str, JSON]:
    """Return what is recorded in place of the secret that the run was given in this field of its input."""
    return {REFERENCE: field}


def is_reference(value: JSON) -> bool:
    """Whether this stands in place of a secret."""
    return isinstance(value, dict) and value.keys() == {REFERENCE} and isinstance(value[REFERENCE], str)


def references_in(payload: Mapping[str, JSON]) -> dict[str, str]:
    """Return the secrets that stand at the top of a payload, by key."""
    return {key: value[REFERENCE] for key, value in payload.items() if is_reference(value)}


# Steps

OF_ENGINE: Mapping[str, frozenset[str]] = {
    "action_call": frozenset({"policy", "call_id", "tool", "turn", "terminate", "origin", "site"}),
    "action_start": frozenset({"attempt", "digest", "fence", "snapshot", "history", "tier", "reason", "limits"}),
    "action_retry": frozenset({"attempt", "code", "wait_seconds"}),
    "action_result": frozenset(
        {
            "error", "code", "usage", "model", "finish", "cost_nano_usd", "decision", "via", "digest", "remember",
            "state", "stop_reason", "returns", "began", "until",
        }
    ),
    "state": frozenset({"plugin"}),
    "pause": frozenset({"pending_action_count", "steps_used", "steps_remaining", "until"}),
    "resume": frozenset({"resumed_reason", "steps_remaining"}),
    "note": frozenset({"code"}),
}  # fmt: skip
"""What the engine itself says in a step, by its type. A run's secret may be a word of it, such as "completed", or stand
in a time or a digest, and is not hidden there: nobody else's words get there."""
ASKED_OF_ENGINE: Mapping[str, frozenset[str]] = {
    "human": frozenset(
        {"ask", "tool", "title", "preview", "undoable", "risk", "digest", "schema", "who", "edited_by", "expires_at"}
    ),
    "model": frozenset({"round", "ledger", "tier"}),
    "sleep": frozenset({"until"}),
    "value": frozenset({"of"}),
    "show": frozenset({"kind"}),
}
"""The same for the payloads of the engine's own policies."""
_ANY_KEYS = frozenset({"output", "answer", "items"})
"""What of a result may have keys from anywhere."""


def hide_in_step(actor: str, type: str, payload: dict[str, JSON]) -> dict[str, JSON]:
    """Return the payload of a step as it is recorded: without secrets, but for what the engine itself says in it."""
    hidden: dict[str, JSON]
    if not _forms_of_run():
        hidden = hide_in(payload)
        return hidden
    own, bookkeeping = OF_ENGINE.get(type, frozenset()), type in OF_ENGINE or type in ("cancel", "action_deferred")
    if type == "action_result" and actor == "runtime":
        own |= {"output"}  # a time, a number or a name that the runtime gave
    hidden = {}
    for key, value in payload.items():
        if key in own:
            hidden[key] = _replaced_in(value, _known, _known, frozenset())
        elif type == "action_call" and key == "payload":
            hidden[key] = hide_in_payload(actor, str(payload.get("policy")), value)
        else:
            hidden[key] = hide_in(value, keys=key in _ANY_KEYS or not bookkeeping)
    return hidden


def hide_in_payload(actor: str, policy: str, payload: dict[str, JSON]) -> dict[str, JSON]:
    """Return the payload of a call as it is recorded. A model that asks for one of these names calls no such policy."""
    own = frozenset[str]() if actor == "model" or not _forms_of_run() else ASKED_OF_ENGINE.get(policy, frozenset())
    said = {key: value for key, value in payload.items() if key not in own}
    kept = {key: value for key, value in payload.items() if key in own}
    hidden: dict[str, JSON] = hide_in(said) | _replaced_in(kept, _known, _known, frozenset())
    return hidden
