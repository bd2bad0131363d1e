"""How the page shows a turn of a policy other than the agent: what was asked, with what input, and what came of it."""

from __future__ import annotations

import html
import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents import Action, Context, Step, policy
from conversations.display.export import export_markdown
from conversations.models import Prompt
from conversations.pages.chat.live import LivePage, catch_up
from conversations.prompts.start import cancel_prompt
from tests.conversations.live_page import Page
from tests.conversations.recorded import Site
from tests.conversations.travel import ROME, installed, owner_of, started
from tests.engine.support import says

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(db: None) -> User:
    """A user who may start policies."""
    return owner_of()


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page_of(prompt: Prompt) -> str:
    """The text of its conversation's page."""
    shown = signed_in(prompt.conversation.owner).get(prompt.conversation.get_absolute_url()).text
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", shown.partition("<main")[2])))


def test_it_shows_what_was_asked_its_input_its_calls_and_its_result(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(site, monkeypatch, says("An old city."))
    prompt = started(ann, payload=ROME | {"notes": ["sea", "hills"]})
    site.works()
    waiting = page_of(prompt)
    assert "Plan a trip Show the input city Rome days 3 notes sea hills" in waiting
    assert "1 step: fx.read" in waiting
    assert "command: book Rome" in waiting or "command book Rome" in waiting
    assert "Result" not in waiting
    site.approves(prompt, ann)
    site.works()
    assert "Result booked true read read 3 told An old city." in page_of(prompt)


def test_its_title_stands_above_the_text_that_it_was_given(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(site, monkeypatch, says("To Rome."))
    prompt = started(ann, "travel.guide", {"text": "Where to?", "season": "spring"})
    site.works()
    shown = page_of(prompt)
    assert "Ask the guide Where to? Show the input season spring" in shown
    assert "To Rome." in shown
    installed(site, monkeypatch, policies=())
    assert "travel.guide Where to?" in page_of(prompt)


@pytest.mark.parametrize(("value", "told"), [("**Two** days.", "Two days."), (["a", "b"], "a b"), (2.5, "2.5")])
def test_a_value_that_is_no_object_is_its_answer(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch, value: object, told: str
) -> None:
    @policy("travel.short", title="Something short")
    async def short(action: Action, ctx: Context) -> list[Step]:
        return ctx.done(value)

    installed(site, monkeypatch, policies=(short,))
    prompt = started(ann, "travel.short", {})
    site.works()
    assert re.search(rf"Something short .*{re.escape(told)}", page_of(prompt))


def test_what_it_returns_is_no_markup(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    @policy("travel.short", title="<b>Short</b>")
    async def short(action: Action, ctx: Context) -> list[Step]:
        return ctx.done({"<i>name</i>": "<script>alert(1)</script>"})

    installed(site, monkeypatch, policies=(short,))
    prompt = started(ann, "travel.short", {"<u>x</u>": "<script>1</script>"})
    site.works()
    shown = signed_in(ann).get(prompt.conversation.get_absolute_url()).text
    for raw in ("<b>Short", "<i>name", "<script>alert", "<u>x", "<script>1"):
        assert raw not in shown
    assert "The result:" in export_markdown(prompt.conversation)


def test_a_program_that_was_stopped_may_be_asked_again_and_not_continued(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would begin anew, and do again what it did. What says otherwise is refused in words."""
    installed(site, monkeypatch)
    prompt = started(ann)
    site.works()
    cancel_prompt(prompt.pk, ann)
    client = signed_in(ann)
    shown = client.get(prompt.conversation.get_absolute_url()).text
    assert f"/prompts/{prompt.pk}/again/" in shown
    assert f"/prompts/{prompt.pk}/continue/" not in shown
    refused = client.post(f"/prompts/{prompt.pk}/continue/")
    assert "cannot continue where it stopped" in html.unescape(refused.text)
    ann.user_permissions.clear()
    again = client.post(f"/prompts/{prompt.pk}/again/")
    assert (again.status_code, prompt.conversation.prompts.count()) == (403, 1)
    assert "You may not start 'travel.plan'." in html.unescape(again.text)


def test_a_live_page_shows_what_a_reload_shows(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(site, monkeypatch, says("An old city."))
    prompt = started(ann)
    page = Page(signed_in(ann).get(prompt.conversation.get_absolute_url()).text)
    live = LivePage(prompt.conversation_id)
    for _ in range(2):
        site.works()
        page.take(live.changed([prompt.pk]))
        site.approves(prompt, ann)
    page.take(live.changed([prompt.pk]))
    reloaded = Page(catch_up(prompt.conversation_id, 0)[0])
    assert [turn.plain() for turn in page.turns.elements] == [turn.plain() for turn in reloaded.turns.elements]
    assert "Result booked true" in page.turns.text()
