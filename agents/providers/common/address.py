"""Addresses of model servers."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

OPENAI = "https://api.openai.com/v1"
"""The `openai` SDK's default address."""


def is_loopback(base_url: str | None) -> bool:
    """Return whether the address is on this machine."""
    host = urlsplit(base_url or "").hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_openai(base_url: str | None) -> bool:
    """Return whether the address is OpenAI itself, at its own place or in Azure."""
    host = urlsplit(base_url or OPENAI).hostname or ""
    return host.endswith((".openai.com", ".openai.azure.com"))
