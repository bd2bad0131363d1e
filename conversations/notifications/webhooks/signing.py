"""Signing: secrets and signatures of Standard Webhooks 1.0 (https://www.standardwebhooks.com).

The site signs what it sends with them, and checks what it receives (conversations.triggers.hooks.proofs).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

PREFIX = "whsec_"
"""What a secret begins with; base64 follows."""
BYTES = 32


def new_secret() -> str:
    """Return a new random secret."""
    return f"{PREFIX}{base64.b64encode(secrets.token_bytes(BYTES)).decode()}"


def signature(secret: str, id: str, timestamp: str, body: bytes) -> str:
    """Return the signature, without its version, of the webhook with this id, sent at this time in seconds."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{id}.{timestamp}.".encode("latin-1", "replace") + body
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
