"""Proofs: how the sender of a webhook shows that it has one of the trigger's secrets, and by which id it names it.

`standard` is Standard Webhooks 1.0 (https://www.standardwebhooks.com), checked by hand: its own package reads the body
as JSON, which it need not be, and knows one secret at a time. `github` is
https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries. All comparisons take the same time
whatever they compare.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from conversations.models import Proof
from conversations.notifications.webhooks.signing import signature

TOLERANCE_SECONDS = 300
"""How far the timestamp of a webhook may be from the site's clock, either way."""
_ID = re.compile(r"[!-~]{1,200}")


class BadProof(Exception):
    """A webhook that did not prove who sent it. `code` is for programs; the message says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def proven_id(proof: str, headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: datetime) -> str:
    """Return the id that the sender gave a webhook, if it proved who it is; "" if it gave none. Raises BadProof."""
    match proof:
        case Proof.STANDARD:
            id = _standard(headers, body, secrets, now)
        case Proof.GITHUB:
            id = _github(headers, body, secrets)
        case _:
            id = _token(headers, secrets)
    if id and not _ID.fullmatch(id):
        raise BadProof("invalid_id", "The id of a webhook is 1 to 200 visible ASCII characters, without spaces.")
    return id


def _standard(headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: datetime) -> str:
    id, sent, signatures = (headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not (id and sent and signatures):
        raise BadProof(
            "unsigned", "Send the headers webhook-id, webhook-timestamp and webhook-signature of Standard Webhooks."
        )
    if not re.fullmatch(r"[0-9]{1,12}", sent):
        raise BadProof("invalid_timestamp", "The header webhook-timestamp is a whole number of seconds since 1970.")
    versions = (each.partition(",") for each in signatures.split())
    given = [value for version, _, value in versions if version == "v1"]
    wanted = [signature(secret, id, sent, body) for secret in secrets]
    if not _any_same(given, wanted):
        raise BadProof(
            "invalid_signature", "The webhook-signature does not fit this body and any secret of the trigger."
        )
    if abs(now.timestamp() - int(sent)) > TOLERANCE_SECONDS:
        raise BadProof("stale", "The webhook-timestamp is more than five minutes from the clock of this site.")
    return id


def _github(headers: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> str:
    given, id = headers.get("X-Hub-Signature-256", ""), headers.get("X-GitHub-Delivery", "")
    if not (given and id):
        raise BadProof("unsigned", "Send the headers X-Hub-Signature-256 and X-GitHub-Delivery, as GitHub does.")
    wanted = [f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}" for secret in secrets]
    if not _any_same([given], wanted):
        raise BadProof(
            "invalid_signature", "The X-Hub-Signature-256 does not fit this body and any secret of the trigger."
        )
    return id


def _token(headers: Mapping[str, str], secrets: Sequence[str]) -> str:
    scheme, _, given = headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise BadProof("unsigned", "Send the token of the trigger, as `Authorization: Bearer TOKEN`.")
    if not _any_same([given.strip()], secrets):
        raise BadProof("invalid_token", "The token is not one of this trigger.")
    return headers.get("Idempotency-Key") or headers.get("webhook-id", "")


def _any_same(given: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether any text of the one is in the other. All are compared, in constant time."""
    pairs = [(a.encode("utf-8", "replace"), b.encode()) for a in given for b in wanted]
    return sum(hmac.compare_digest(a, b) for a, b in pairs) > 0
