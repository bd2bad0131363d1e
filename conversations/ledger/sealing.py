"""Sealing: encrypting what the site must be able to read again, under keys that are derived from SECRET_KEY.

The keys are derived from SECRET_KEY and SECRET_KEY_FALLBACKS by HKDF (RFC 5869). That is made for keys that are random
already, as these are, so no slow derivation for passwords is needed; and with a label of its own, no key of another
purpose, such as the signature of a session, tells anything of this one. Fernet encrypts and authenticates.
"""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

SALT = b"agentsite.conversations"
"""What sets these keys apart from everything else that is derived from SECRET_KEY."""


def lock(label: bytes) -> MultiFernet:
    """Return what encrypts and decrypts for the purpose with this label."""
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return MultiFernet([Fernet(_derived(key, label)) for key in keys])


def _derived(key: str | bytes, label: bytes) -> bytes:
    secret = key if isinstance(key, bytes) else key.encode()
    return base64.urlsafe_b64encode(HKDF(SHA256(), length=32, salt=SALT, info=label).derive(secret))
