"""Hidden turns, repeated turns, and the status of a turn that has ended."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.engine.ledger import Step
from conversations.accounts.presence import record_presence
from conversations.approvals.decisions import decide
from conversations.display.export import export_markdown
from conversations.display.search import search
from conversations.erasure.conversations import erase
from conversations.models import Conversation, Draft, Output, Prompt
from conversations.pages.chat.live import LivePage, catch_up
from conversations.pages.sidebar import SidebarRow, sidebar
from conversations.prompts.start import repeat_prompt, start_prompt
from tests.conversations.live_page import Page
from tests.conversations.support import Story, person, says

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client: Client) -> User:
    user = person("anna", first_name="Anna")
    client.force_login(user)
    record_presence(user.pk)
    return user


class Behind(Story):
    """A hidden turn that the system started."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation, self.round, self.calls = conversation, 0, 0
        self.prompt = start_prompt(conversation, None, "Tidy up quietly.", visible=False)
        Conversation.objects.filter(pk=conversation.pk).update(active_prompt=self.prompt)
        self.append(Step("worker:1", "action_start", {"attempt": 1, "fence": 1}))


def answered(owner: User, said: str = "Look around.", words: str = "Nothing there.") -> Story:
    story = Story(owner, said)
    story.asks_model()
    story.answers(says(words), tokens=600)
    story.ends()
    return story


def shown(client: Client, conversation: Conversation) -> str:
    return client.get(f"/c/{conversation.pk}/").text


def row(owner: User) -> SidebarRow:
    return sidebar(owner).groups[0].rows[0]


def same(page: Page, conversation: Conversation) -> None:
    """An open page has come to show what a page loaded now shows."""
    fresh = Page(catch_up(conversation.pk, 0)[0])
    assert [turn.plain() for turn in page.turns.elements] == [turn.plain() for turn in fresh.turns.elements]


def test_a_turn_in_the_background_is_neither_shown_nor_marked(client: Client, owner: User) -> None:
    """Neither on the page, live or loaded, nor in the list, the search or the export; the API returns it (visible)."""
    talk = answered(owner).conversation
    client.post(f"/c/{talk.pk}/")
    Conversation.objects.filter(pk=talk.pk).update(seen_seq=99)
    page, live = Page(shown(client, talk)), LivePage(talk.pk)
    live.changed({1})
    behind = Behind(talk)
    behind.asks_model()
    draft = {"conversation": talk, "prompt": behind.prompt, "path": "1", "text": "Quietly", "size": 7}
    Draft.objects.create(**draft, attempt=1, fence=1)
    page.take(live.changed({behind.prompt.pk}) + live.drafted())
    same(page, talk)
    html = shown(client, talk)
    assert "uietly" not in html
    assert "In the background" in html, "whoever wants to write is told why they cannot"
    assert (row(owner).working, row(owner).unread, row(owner).waits.number) == (False, False, 0)
    behind.answers(says("Quietly done."))
    behind.ends("failed", "model_error", "It went wrong quietly.")
    page.take(live.changed({behind.prompt.pk}))
    same(page, talk)
    assert "uietly" not in shown(client, talk) + export_markdown(talk)
    assert search(Conversation.objects.all(), "quietly", 9) == {}
    assert (row(owner).failed, row(owner).unread) == (False, False)
    told = client.get(f"/api/prompts/{behind.prompt.pk}/").json()
    assert (told["visible"], told["outputs"][0]["text"]) == (False, "Quietly done.")


def test_what_it_asks_is_shown_and_can_be_decided(client: Client, owner: User) -> None:
    """A gate that nobody sees would be lost; nothing else of the turn is shown, before and after the decision."""
    talk = answered(owner).conversation
    page, live = Page(shown(client, talk)), LivePage(talk.pk)
    live.changed({1})
    behind = Behind(talk)
    behind.asks_model()
    read, call = behind.call("files.read", path="secret.txt"), behind.call("shell.run", command="ls")
    behind.answers(says("Quietly I ask."), read, call)
    behind.comes_to(read, "x")
    gate = behind.gate(call)
    behind.pauses()
    page.take(live.changed({behind.prompt.pk}))
    same(page, talk)
    html = shown(client, talk)
    assert f'id="a-{gate.pk}"' in html
    assert "Started in the background" in html
    assert "uietly" not in html
    assert "secret.txt" not in html
    assert (row(owner).waits.number, sidebar(owner).groups[0].title) == (1, "Waiting for you")
    answer = client.post(f"/approvals/{gate.pk}/decide/", {"decision": "approve", "digest": gate.digest})
    assert answer.status_code == 302
    page.take(live.changed({behind.prompt.pk}))
    same(page, talk)
    assert "Approved by you" in shown(client, talk)


def test_a_turn_that_is_asked_again_is_folded_on_every_page(client: Client, owner: User) -> None:
    """The old answer stays and can be opened; both say so; only the newest can be repeated."""
    story = answered(owner, words="The first answer.")
    talk = story.conversation
    page, live = Page(shown(client, talk)), LivePage(talk.pk)
    live.changed({story.prompt.pk})
    assert shown(client, talk).count("Ask again") == 1
    again = repeat_prompt(story.prompt.pk, owner)
    page.take(live.changed({again.pk}))
    same(page, talk)
    folded = page.turns.find(f"t-{story.prompt.pk}-earlier")
    assert folded
    assert folded.text().startswith("An earlier answer")
    assert "The first answer." in folded.text()
    html = shown(client, talk)
    assert "Asked again" in html
    assert html.index("An earlier answer") < html.index("The first answer.") < html.index("Asked again")
    after = client.get(f"/c/{talk.pk}/")
    later = Page(after.text)
    later.take(catch_up(talk.pk, story.conversation.seq)[0])
    same(later, talk)


def test_asking_again_works_without_a_script(client: Client, owner: User) -> None:
    story = answered(owner)
    form = re.findall(r'<form class="go-on" method="post" action="([^"]+)"', shown(client, story.conversation))
    assert form == [f"/prompts/{story.prompt.pk}/again/"]
    assert client.post(form[0]).status_code == 302
    new = Prompt.objects.get(number=2)
    assert (new.repeats, new.input) == (story.prompt, "Look around.")


@pytest.mark.parametrize(
    ("reason", "words", "first"),
    [
        ("quota", "usage in 24 hours is below the limit", "Go on from here"),
        ("timeout", "as much time again", "Go on from here"),
        ("parse_failures", "so may the other model tier", "Ask again"),
    ],
)
def test_each_end_says_what_happened_and_what_to_do(
    client: Client, owner: User, reason: str, words: str, first: str
) -> None:
    story = Story(owner)
    story.ends("failed", reason)
    Prompt.objects.filter(pk=story.prompt.pk).update(fence=1)
    html = shown(client, story.conversation)
    assert words in html
    assert re.findall(r'<button class="btn primary">(?:<svg.*?</svg>)?([^<]+)', html) == [first]


def test_what_the_last_step_came_to_is_the_answer_where_it_ended_the_turn(client: Client, owner: User) -> None:
    """R12: nothing comes after it, so its result is not hidden in the details."""
    story = Story(owner)
    story.asks_model()
    call = story.call("files.read", path="a.txt")
    story.answers(call)
    story.comes_to(call, "The whole <answer>.")
    story.ends(stop_reason="terminate")
    html = shown(client, story.conversation)
    assert "Ended with the result of the last step" in html
    panel = re.findall(r'<div class="panel came".*?</pre>', html, re.S)[0]
    assert "The whole &lt;answer&gt;." in panel


def test_unreadable_answers_are_counted_in_a_row(client: Client, owner: User) -> None:
    """Their error is in the details, but never the answer itself: it may contain calls."""
    story = Story(owner)
    for number in (1, 2):
        story.asks_model()
        bad = {
            "error": True,
            "code": "parse_failure",
            "raw": '{"tool_calls": 1',
            "message": f"No JSON {number}.",
        }
        story.append(Step("model", "action_result", bad, path=str(number)))
    html = shown(client, story.conversation)
    assert "(try 1 of 3)" in html
    assert "(try 2 of 3)" in html
    assert "No JSON 2." in html
    assert "tool_calls" not in html


def test_thoughts_are_markdown_that_can_do_nothing(client: Client, owner: User) -> None:
    story = Story(owner)
    story.asks_model()
    story.answers(Step("model", "reasoning", {"text": "**Perhaps** <script>alert(1)</script>"}))
    details = re.findall(r'<details class="step">.*?</details>', shown(client, story.conversation), re.S)[0]
    assert "Thinking" in details
    assert "<strong>Perhaps</strong>" in details
    assert "<script>" not in details


LENGTHS = [("x " * 1_900, False), ("x " * 2_100, True), ("y\n" * 39, False), ("y\n" * 60, True)]


@pytest.mark.parametrize(("text", "folds"), LENGTHS)
def test_a_long_message_shows_how_it_begins_and_opens(client: Client, owner: User, text: str, folds: bool) -> None:
    html = shown(client, Story(owner, text).conversation)
    assert ("Show all" in html) is folds
    assert html.count('<p class="typed head" dir="auto">') == folds


def test_who_deleted_a_conversation_is_told_so_by_its_address(client: Client, owner: User) -> None:
    """The browser's "Back" leads there. Nobody else learns that it existed."""
    story = answered(owner)
    erase(story.conversation, owner)
    for path in ("", "delete/"):
        answer: Any = client.get(f"/c/{story.conversation.pk}/{path}")
        assert answer.status_code == 410
        assert "You deleted this conversation" in answer.text
    client.force_login(person("bob"))
    assert client.get(f"/c/{story.conversation.pk}/").status_code == 404


def test_what_was_typed_stays_where_another_window_decided(client: Client, owner: User) -> None:
    """Without scripts too: the answer says who decided what, and shows what was typed."""
    story = Story(owner)
    story.asks_model()
    call = story.call("shell.run", command="ls")
    story.answers(call)
    gate = story.gate(call)
    story.pauses()
    decide(gate.pk, owner, "approve", digest=gate.digest, via="admin")
    typed = {"decision": "reject", "digest": gate.digest, "reason": "Because <so>."}
    answer = client.post(f"/approvals/{gate.pk}/decide/", typed)
    assert answer.status_code == 409
    assert "Approved by you" in answer.text
    assert "Because &lt;so&gt;." in answer.text
    assert Output.objects.get(pk=gate.pk).gate == "approved"
