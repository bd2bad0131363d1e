"""Who looks at what waits, and the letters about it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from pytest_django.fixtures import Settings

from tests.conversations.support import person


@pytest.fixture
def letters(settings: Settings) -> Iterator[None]:
    """A turn that waits has done so for long enough: letters about it can be sent."""
    settings.AGENTSITE_MAIL_AFTER_SECONDS = -60
    yield
    mail.outbox = []


@pytest.fixture
def chief(client: Client) -> User:
    """An administrator, who is signed in and has an address."""
    user = person("chief", is_superuser=True, is_staff=True, email="chief@example.org")
    client.force_login(user)
    return user
