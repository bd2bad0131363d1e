"""What tests of webhooks share: triggers that they fire, and senders that sign as each kind of proof demands."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.plugins.triggers.schedule import Schedule
from conversations.models import Trigger
from conversations.triggers import managing
from conversations.triggers.hooks import secrets

JSON_TYPE = "application/json"
PULL = {"action": "opened", "pull_request": {"title": "Mend the pump", "labels": [{"name": "urgent"}]}}


def hooked(owner: User, proof: str = "standard", **more: Any) -> tuple[Trigger, str]:
    """Make a trigger that webhooks fire; return it with its first secret."""
    new = managing.NewTrigger(Schedule("UTC"), **{"text": "read payload.json", "proof": proof, **more})
    made = managing.create(owner, new)
    return made, secrets.first(made)


def signed(secret: str, body: bytes, id: str = "msg_1", at: float | None = None) -> dict[str, str]:
    """Return the headers of Standard Webhooks for this body."""
    sent = str(int(timezone.now().timestamp() if at is None else at))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{id}.{sent}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": id,
        "webhook-timestamp": sent,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def send(trigger: Trigger, headers: Mapping[str, str], body: Any = PULL, media_type: str = JSON_TYPE) -> Any:
    """Post a webhook as a stranger: no session, and the checks of CSRF are on."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Client(enforce_csrf_checks=True).post(trigger.hook_path, raw, content_type=media_type, headers=headers)


def deliver(trigger: Trigger, secret: str, id: str = "msg_1", body: Any = PULL, **more: Any) -> Any:
    """Post a webhook of Standard Webhooks, signed now."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return send(trigger, signed(secret, raw, id), raw, **more)
