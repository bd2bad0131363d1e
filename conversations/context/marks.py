"""Marks: how a client's requests are recognised, also those of clients that cannot say which conversation they mean.

What a client sends as its history ends with the answer that it was given last. So of each answer a digest is kept of
all texts that the client then has, and the next request whose history has that digest goes on in the same conversation.
Digests are keyed with SECRET_KEY: a plain one would confirm a short text to whoever tries all that are likely.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.utils import timezone
from django.utils.crypto import salted_hmac

from agents.engine.ledger import JSON, canonical
from conversations.models import ApiKey, ClientMark, Conversation, Prompt

RETRIED_WITHIN = timedelta(minutes=10)
"""How long after a turn's end a client that says that it tries again is given the same answer."""
CANDIDATES_MOST = 20
"""How many turns with the same texts are looked at, the newest first."""

REQUEST, ANSWER = ClientMark.Kind.REQUEST, ClientMark.Kind.ANSWER


def request_digest(conversation: int | None, messages: JSON) -> str:
    """Return the digest of a request: the conversation that it names, and all of its messages."""
    return _digest("request", [conversation, messages])


def texts_digest(texts: Iterable[tuple[str, str]]) -> str:
    """Return the digest of what was said, by whom.

    Spaces make no difference: clients trim and wrap texts. Nor do texts without a word, which clients leave out.
    """
    return _digest("texts", [[role, " ".join(words)] for role, text in texts if (words := text.split())])


def _digest(kind: str, value: JSON) -> str:
    return salted_hmac(f"conversations.context.{kind}", canonical(value), algorithm="sha256").hexdigest()


def mark(key: ApiKey, prompt: Prompt, kind: ClientMark.Kind, digest: str) -> None:
    """Remember a digest. The same again changes nothing."""
    ClientMark.objects.get_or_create(key=key, prompt=prompt, kind=kind, digest=digest)


def is_marked(key: ApiKey, prompt: Prompt, digest: str) -> bool:
    """Whether this very request started this turn."""
    return ClientMark.objects.filter(key=key, prompt=prompt, kind=REQUEST, digest=digest).exists()


def sent_before(key: ApiKey, digest: str, *, again: bool) -> Prompt | None:
    """Return the turn that this request has started, while it is open.

    `again`: the client says that it tries again, so its answer may have been lost: then also for RETRIED_WITHIN after.
    """
    found = ClientMark.objects.filter(key=key, kind=REQUEST, digest=digest).order_by("-prompt")
    prompt = marked.prompt if (marked := found.select_related("prompt").first()) else None
    if prompt is None or not prompt.ended:
        return prompt
    recent = prompt.ended_at is not None and timezone.now() - prompt.ended_at < RETRIED_WITHIN
    return prompt if again and recent else None


def conversation_of(key: ApiKey, texts: list[tuple[str, str]]) -> Conversation | None:
    """Return the conversation in which a client has been told exactly these texts; None if there is none.

    If there are several, it is the one in which nothing was said since, or else the newest.
    """
    if not texts:
        return None
    marks = ClientMark.objects.filter(key=key, kind=ANSWER, digest=texts_digest(texts)).order_by("-prompt")
    prompts = [each.prompt for each in marks.select_related("prompt__conversation")[:CANDIDATES_MOST]]
    theirs = [prompt for prompt in prompts if prompt.conversation.owner_id == key.user_id]
    latest = (each for each in theirs if not each.conversation.prompts.filter(number__gt=each.number).exists())
    found = next(latest, None) or next(iter(theirs), None)
    return found.conversation if found else None
