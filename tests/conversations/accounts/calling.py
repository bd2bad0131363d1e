"""Calling /v1 with keys, as the passthrough does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.passthrough.caller import Tokens
from agents.passthrough.errors import Refused
from conversations.accounts.passthrough import KnownKey, SiteCaller
from conversations.models import ApiKey, PassthroughUsage, Scope

ANSWER = Tokens(10, 4, 5, 2)
MODEL = "small-1"


def key_of(user: User, **columns: Any) -> tuple[ApiKey, str]:
    """Create a key for /v1; return it with the header that it is sent in."""
    given = {"name": "laptop", "scopes": [Scope.PASSTHROUGH.value], "expiry": None} | columns
    key, text = ApiKey.objects.create(user=user, prefix="agk_", **given)
    return key, f"Bearer {text}"


def known(caller: SiteCaller, header: str) -> KnownKey:
    return asyncio.run(caller.authenticate(header))


def unknown(caller: SiteCaller, header: str) -> Refused:
    with pytest.raises(Refused) as error:
        known(caller, header)
    return error.value


def refused(caller: SiteCaller, who: KnownKey, model: str = MODEL) -> Refused:
    with pytest.raises(Refused) as error:
        caller.may(who, model)
    return error.value


def counted(*columns: str) -> list[tuple[Any, ...]]:
    """Return these columns of the rows, by key and model."""
    return list(PassthroughUsage.objects.order_by("key_id", "model", "minute").values_list(*columns))
