"""Fixtures of the tests of files on pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from conversations.models import Conversation
from conversations.prompts.start import start_conversation


@pytest.fixture(autouse=True)
def _folder(settings: Any, tmp_path: Path) -> None:
    """A data folder of this test's own."""
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def conversation(ann: User) -> Conversation:
    """A conversation of ann's."""
    return start_conversation(ann)


@pytest.fixture
def client(client: Client, ann: User) -> Client:
    """Ann's browser."""
    client.force_login(ann)
    return client
