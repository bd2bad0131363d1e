"""How often pages ask the database: as often for much as for little, on every page that shows rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from conversations.models import Conversation, ConversationKind
from conversations.prompts.start import start_conversation
from tests.conversations.recorded import Site
from tests.conversations.support import Story, asking, person, says
from tests.workflows import shop
from workflows.running import start_run

pytestmark = pytest.mark.django_db
LISTS = [f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist" for model in admin.site._registry]
PAGES = [
    "/c/{chat}/",
    "/c/{chat}/?turns=100",
    "/c/{chat}/usage/",
    "/c/{chat}/print/",
    "/",
    "/list/",
    "/list/?q=look",
    "/prompts/{turn}/",
    "/account/",
    "/workflows/",
    "/workflows/runs/",
    "/workflows/runs/?q=paper",
    "/admin/",
    "/api/conversations/",
    "/api/approvals/",
    "/api/workflows/runs/",
]
FEW, MANY = 3, 12


@pytest.fixture(autouse=True)
def shop_installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with shop.installed(site, monkeypatch):
        yield


def talked(owner: User, talk: Conversation | None = None, rounds: int = 1) -> Story:
    """A turn that has ended, with so many rounds."""
    story = Story(owner, "Look around.", talk)
    for number in range(rounds):
        story.asks_model()
        call = story.call("files.list", path=".")
        story.answers(says(f"I looked {number} times."), call)
        story.begins(call)
        story.comes_to(call, "a.txt")
    story.ends()
    return story


def fill(owner: User, chat: Conversation, times: int) -> Story:
    """Do everything so many times: turns of the chat, chats, approvals that wait, runs. Returns a turn as long."""
    for number in range(times):
        talked(owner, chat)
        talked(owner)
        asking(owner, f"echo {number}")
        asking(person(f"ann-{times}-{number}"), f"echo {number}")
        start_run(shop.order, owner, {"item": f"paper {number}"})
    return talked(owner, rounds=times)


def test_pages_ask_the_database_as_often_for_much_as_for_little(client: Client, settings: Any) -> None:
    settings.AGENTSITE_PROMPTS_AT_ONCE = 0
    owner = person("ann", is_superuser=True, is_staff=True)
    client.force_login(owner)
    chat, asked = start_conversation(owner), list[dict[str, int]]()
    for times in (FEW, MANY):
        turn = fill(owner, chat, times).prompt.pk
        pages = {page: page.format(chat=chat.pk, turn=turn) for page in PAGES} | {name: reverse(name) for name in LISTS}
        asked.append({name: _queries(client, address) for name, address in pages.items()})
    assert Conversation.objects.filter(kind=ConversationKind.RUN).count() == FEW + MANY
    assert asked[0] == asked[1]


def _queries(client: Client, address: str) -> int:
    """Return how many queries a page takes, which has been loaded before."""
    client.get(address)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200, address
    return len(queries)
