"""Live updates: pushes make an open page show what a reload would show, and contain only what changed."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client

from agents.engine.ledger import Step
from conversations.approvals.decisions import decide
from conversations.erasure.steps import redact
from conversations.models import Conversation, Draft, Prompt
from conversations.models import Step as Row
from conversations.pages.chat.live import LivePage, catch_up, fragment, list_html
from conversations.pages.timeline.turns import timeline
from tests.budget import examples
from tests.conversations.live_page import Lacks, Page, parsed
from tests.conversations.support import Story, asking, person, says

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client: Client) -> User:
    user = person("anna", first_name="Anna")
    client.force_login(user)
    return user


def opened(client: Client, story: Story) -> Page:
    return Page(client.get(f"/c/{story.conversation.pk}/").text)


def fresh(story: Story) -> Page:
    """Return what a page loaded now shows."""
    html, _ = catch_up(story.conversation.pk, 0)
    return Page(html)


def draft(story: Story, path: str, text: str, attempt: int = 1) -> None:
    """Write a draft, like a worker."""
    Draft.objects.update_or_create(
        conversation=story.conversation,
        prompt=story.prompt,
        path=path,
        defaults={"attempt": attempt, "fence": 1, "text": text, "size": len(text)},
    )


@contextmanager
def before_query(number: int, do: Callable[[], object]) -> Iterator[list[int]]:
    """Call `do` before the query with this number, from 0, of those made in this block. Yields a list of its number."""
    made, fell = itertools.count(), list[int]()

    def look(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if not fell and next(made) == number:
            fell.append(number)
            do()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(look):
        yield fell


def assert_same(page: Page, other: Page) -> None:
    def turns(one: Page) -> object:
        return [turn.plain() for turn in one.turns.elements]

    assert turns(page) == turns(other)


def parts(story: Story) -> dict[str, str]:
    conversation = Conversation.objects.select_related("owner").get(pk=story.conversation.pk)
    return {
        name: version for turn in timeline(conversation, conversation.owner) for name, version in turn.parts.items()
    }


def long_turn(owner: User, calls: int) -> Story:
    story = Story(owner)
    for _ in range(calls):
        story.asks_model()
        call = story.call("files.list", path=".")
        story.answers(call)
        story.comes_to(call, "nothing")
    return story


def test_a_version_tells_of_any_change_and_of_nothing_else(owner: User) -> None:
    """The same data has the same version; a change affects its own block and no other."""
    story, gate = asking(owner)
    before = parts(story)
    assert parts(story) == before
    decide(gate.pk, owner, "approve", digest=gate.digest, via="page")
    after = parts(story)
    card, foot = f"b-{story.prompt.pk}-{gate.position}", f"b-{story.prompt.pk}-foot"
    assert {name for name in after if after[name] != before.get(name)} == {card, foot}


def test_a_push_names_what_the_page_has(owner: User) -> None:
    """In a turn with many steps only the new step is sent, and the line above them."""
    story = long_turn(owner, 50)
    live = LivePage(story.conversation.pk)
    whole = live.changed([story.prompt.pk])
    story.asks_model()
    call = story.call("files.read", path="new.txt")
    story.answers(says("Now another."), call)
    story.comes_to(call, "the content")
    pushed = live.changed([story.prompt.pk])
    assert len(pushed) < len(whole) / 4
    assert "the content" in pushed
    assert "nothing" not in pushed


def test_a_push_of_a_long_turn_takes_few_queries(owner: User, django_assert_max_num_queries: object) -> None:
    story = long_turn(owner, 60)
    live = LivePage(story.conversation.pk)
    live.changed([story.prompt.pk])
    story.asks_model()
    story.answers(says("One more."))
    with django_assert_max_num_queries(8):  # type: ignore[operator]
        assert "One more." in live.changed([story.prompt.pk])


def test_nothing_new_is_nothing_to_push(owner: User) -> None:
    story, _ = asking(owner)
    live = LivePage(story.conversation.pk)
    live.changed([story.prompt.pk])
    assert live.drafted() == ""
    again = Page(live.changed([story.prompt.pk]))
    assert again.turns.text() == ""


def test_a_page_follows_a_turn_to_its_end(client: Client, owner: User) -> None:
    """At every step, the updated page and a reloaded one are the same."""
    story = Story(owner, "Look **around**.")
    page, live = opened(client, story), LivePage(story.conversation.pk)

    def follow() -> None:
        page.take(live.changed([story.prompt.pk]))
        assert_same(page, opened(client, story))
        assert_same(page, fresh(story))

    story.asks_model()
    follow()
    read, run = story.call("files.read", path="a.txt"), story.call("shell.run", command="ls <x>")
    story.answers(says("I look, and *run*."), read, run)
    story.comes_to(read, "content of a")
    follow()
    gate = story.gate(run)
    story.pauses()
    follow()
    assert "Waiting for" in page.turns.text()
    decide(gate.pk, owner, "approve", digest=gate.digest, via="page")
    follow()
    assert "Continuing" in page.turns.text()
    story.begins(run)
    follow()
    assert "Agent is working" in page.turns.text()
    story.comes_to(run, "a.txt")
    story.emits(run, "widget", widget="bars", data={}, fallback="Bars")
    follow()
    story.asks_model()
    story.answers(says("All done."))
    story.ends()
    follow()
    again = Story(owner, "And then?", story.conversation)
    page.take(live.changed([again.prompt.pk]))
    assert_same(page, opened(client, story))


def test_a_page_that_missed_anything_ends_with_the_same(client: Client, owner: User) -> None:
    """With frames lost, repeated and reordered, the page asks, and ends with what the server has (I9, T-38, T-39)."""
    for seed in range(examples(4)):
        chance = random.Random(seed)
        story = Story(owner)
        page, live = opened(client, story), LivePage(story.conversation.pk)
        late: list[str] = []
        for number in range(8):
            story.asks_model()
            call = story.call("files.read", path=f"{number}.txt")
            story.answers(says(f"Number {number}."), call)
            frames = [live.changed([story.prompt.pk])]
            draft(story, f"{story.round}/0", f"half of {number}")
            frames.append(live.drafted())
            story.comes_to(call, "content")
            Draft.objects.all().delete()
            frames.append(live.changed([story.prompt.pk]))
            frames += [*late, *chance.sample(frames, chance.randrange(3))]
            late = chance.sample(frames, chance.randrange(3))
            chance.shuffle(frames)
            for frame in frames[chance.randrange(3) :]:
                try:
                    page.take(frame)
                except Lacks:
                    page.take(catch_up(story.conversation.pk, 0)[0])
        html, seq = catch_up(story.conversation.pk, page.seq)
        try:
            page.take(html)
        except Lacks:
            page.take(catch_up(story.conversation.pk, 0)[0])
        assert page.seq == seq
        assert_same(page, fresh(story))


def test_catching_up_from_any_step(client: Client, owner: User) -> None:
    """A page that was rendered at any step ends up the same."""
    story = Story(owner, "First.")
    pages = [opened(client, story)]
    for number in range(3):
        story.asks_model()
        call = story.call("files.read", path=f"{number}.txt")
        story.answers(says(f"Number {number}."), call)
        pages.append(opened(client, story))
        story.comes_to(call, "content")
    story.ends()
    pages.append(opened(client, story))
    Story(owner, "Second.", story.conversation)
    for page in pages:
        html, seq = catch_up(story.conversation.pk, page.seq)
        page.take(html)
        assert page.seq == seq
        assert_same(page, fresh(story))
    assert "Number 0." not in catch_up(story.conversation.pk, seq)[0]
    assert catch_up(10**9, 7) == ("", 7)


def test_text_streams_in_pieces_and_becomes_the_record(client: Client, owner: User) -> None:
    story = Story(owner)
    story.asks_model()
    page, live = opened(client, story), LivePage(story.conversation.pk)
    page.take(live.changed([story.prompt.pk]))
    text = "One paragraph.\n\nAnother, **longer** one.\n\n```py\nprint(1)\n```\n\nAnd an end."
    sent = 0
    for end in range(5, len(text) + 5, 5):
        draft(story, "1", text[:end])
        frame = live.drafted()
        sent += frame.count("One paragraph.")
        page.take(frame)
        assert_same(page, opened(client, story))
    assert sent < 4
    prose = page.turns.find(f"d-{story.prompt.pk}-1")
    assert prose
    assert prose.attributes["aria-busy"] == "true"
    shown = prose.text()
    Draft.objects.all().delete()
    story.answers(says(text))
    page.take(live.changed([story.prompt.pk]))
    assert page.turns.find(f"d-{story.prompt.pk}-1") is None
    assert shown in page.turns.text()
    assert_same(page, opened(client, story))


@pytest.mark.parametrize("open_page", [True, False])
def test_a_text_recorded_while_a_frame_is_made_is_shown_once(client: Client, owner: User, open_page: bool) -> None:
    """Whichever query the commit falls before, the draft or the recorded text is in the frame, and never both."""
    for number in range(100):
        story = Story(owner)
        story.asks_model()
        page, live = opened(client, story), LivePage(story.conversation.pk)
        page.take(live.changed([story.prompt.pk]))
        draft(story, "1", "A slow answer.")
        page.take(live.drafted())

        def stops(story: Story = story) -> None:
            Draft.objects.all().delete()
            story.answers(Step("model", "text", {"text": "A slow answer.", "partial": True}))
            story.ends("cancelled", "user_cancel")

        with before_query(number, stops) as fell:
            frame = live.changed([story.prompt.pk]) if open_page else catch_up(story.conversation.pk, 0)[0]
        page.take(frame)
        assert page.turns.text().count("A slow answer.") == 1, f"before query {number}"
        if not fell:
            break
        page.take(live.changed([story.prompt.pk]))
        assert_same(page, fresh(story))
    assert 5 < number < 99


def test_text_that_begins_anew_replaces_what_was_there(client: Client, owner: User) -> None:
    story = Story(owner)
    story.asks_model()
    page, live = opened(client, story), LivePage(story.conversation.pk)
    for attempt, text in ((1, "First try.\n\nMore of it.\n\nAnd more"), (2, "Second"), (2, "Second try.\n\nIt")):
        draft(story, "1", text, attempt)
        page.take(live.drafted())
        assert_same(page, opened(client, story))
    assert "First" not in page.turns.text()


def test_a_running_command_says_what_it_says(client: Client, owner: User) -> None:
    """Its output grows on its card, with nothing hidden in it; of a long one the end is shown."""
    story, gate = asking(owner)
    decide(gate.pk, owner, "approve", digest=gate.digest, via="page")
    page, live = opened(client, story), LivePage(story.conversation.pk)
    page.take(live.changed([story.prompt.pk]))
    call = Step("model", "action_call", {"policy": "shell.run", "payload": {}}, path=gate.path)
    story.begins(call)
    page.take(live.changed([story.prompt.pk]))
    for text in ("one\n", "one\n<b>two</b> \u202e\n", "x" * 50 + "\n" * 3 + "line\n" * 2_000):
        draft(story, gate.path, text)
        page.take(live.drafted())
        assert_same(page, opened(client, story))
        if "two" in text:
            assert "<b>two</b> U+202E" in page.turns.text()
    assert "xxx" not in page.turns.text()
    assert live.drafted() == ""
    Draft.objects.all().delete()
    story.comes_to(call, {"stdout": "all of it"})
    page.take(live.changed([story.prompt.pk]))
    assert_same(page, opened(client, story))


def test_a_page_that_was_away_hears_what_a_command_said_meanwhile(client: Client, owner: User) -> None:
    """The page has the block in this version; the newer output of its command is sent all the same (I9)."""
    story, gate = asking(owner)
    decide(gate.pk, owner, "approve", digest=gate.digest, via="page")
    story.begins(Step("model", "action_call", {"policy": "shell.run", "payload": {}}, path=gate.path))
    page = opened(client, story)
    draft(story, gate.path, "Name: ")
    html, _ = catch_up(story.conversation.pk, page.seq)
    page.take(html)
    assert_same(page, opened(client, story))
    away, live = opened(client, story), LivePage(story.conversation.pk)
    live.changed([story.prompt.pk])
    draft(story, gate.path, "Name: x\n")
    away.take(live.changed([story.prompt.pk]))
    assert_same(away, opened(client, story))


def test_what_was_stopped_halfway_says_so(client: Client, owner: User) -> None:
    story = Story(owner)
    story.asks_model()
    story.answers(Step("model", "text", {"text": "Half of", "partial": True}))
    story.ends("cancelled", "cancelled")
    assert "Stopped here." in client.get(f"/c/{story.conversation.pk}/").text


def test_the_line_says_that_it_works_and_then_what_it_did(client: Client, owner: User) -> None:
    """While a turn is working its steps are counted; afterwards the line says what they did (S72)."""
    story = long_turn(owner, 3)
    text = opened(client, story).turns.text()
    assert "Agent is working\u2026 3 steps" in text
    story.ends()
    text = opened(client, story).turns.text()
    assert "working" not in text
    assert "3 steps: listed the workspace, listed the workspace, listed the workspace" in text


def test_after_a_form_the_page_is_told_what_a_push_would(client: Client, owner: User) -> None:
    """Sending, stopping and continuing return to an open page what changed since its step."""
    story = Story(owner)
    Prompt.objects.update(fence=1)  # a worker had it
    story.asks_model()
    story.ends("failed", "model_error", "The model did not answer.")
    page = opened(client, story)
    htmx = {"HX-Request": "true", "X-Seq": str(page.seq)}
    assert "Go on from here" in client.get(f"/c/{story.conversation.pk}/").text
    for address in (
        f"/prompts/{story.prompt.pk}/continue/",
        "/prompts/{}/cancel/",
        f"/c/{story.conversation.pk}/prompts/",
    ):
        last = story.conversation.prompts.order_by("-number").values_list("pk", flat=True)[0]
        response = client.post(address.format(last), {"input": "More."}, headers=htmx)
        assert response.status_code == 200
        assert "<!doctype" not in response.text
        page.take(response.text)
        assert_same(page, fresh(story))
    refused = client.post(f"/c/{story.conversation.pk}/prompts/", {"input": "Again."}, headers=htmx)
    assert refused.status_code == 409
    assert "A turn of this conversation is running or waiting" in refused.text
    assert client.post(f"/prompts/{story.prompt.pk}/continue/", headers=htmx).status_code == 409
    assert client.post(f"/prompts/{story.prompt.pk}/continue/").status_code == 409


def test_only_a_page_that_was_away_is_told_again_what_was_redacted(
    client: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is there heard of it when it happened: a form is answered with what is new alone (I9).

    Of turns that a fresh page does not show, none is.
    """
    old = Story(owner)
    old.asks_model()
    old.answers(says("The password is swordfish."))
    old.ends()
    redact(old.conversation, [Row.objects.get(type="text").seq], owner, "A password.")
    Story(owner, conversation=old.conversation).ends()
    page, name = opened(client, old), f"t-{old.prompt.pk}"
    htmx = {"HX-Request": "true", "X-Seq": str(page.seq)}
    answer = client.post(f"/c/{old.conversation.pk}/prompts/", {"input": "More."}, headers=htmx)
    assert name not in answer.text
    assert f"t-{old.conversation.prompts.latest('number').pk}" in answer.text
    seq = Conversation.objects.get(pk=old.conversation.pk).seq
    assert name in catch_up(old.conversation.pk, seq)[0]
    monkeypatch.setattr("conversations.pages.chat.live.TURNS_MOST", 2)
    assert name not in catch_up(old.conversation.pk, seq)[0]


def test_a_message_that_is_sent_twice_is_taken_once(client: Client, owner: User) -> None:
    """A page sends a key with its message: a second click finds the turn of the first (T-32)."""
    for address in ("/c/", None):
        story = Story(owner)
        story.ends()
        sent = {"input": "Once.", "key": f"k{address}"}
        for _ in range(2):
            assert client.post(address or f"/c/{story.conversation.pk}/prompts/", sent).status_code == 302
    assert story.conversation.prompts.count() == 2
    assert Conversation.objects.filter(title="Once.").count() == 1


def test_a_key_that_stands_for_another_message_is_changed(client: Client, owner: User) -> None:
    """The response to the first one was lost: the next message is not mistaken for it, but kept to be sent again."""
    story = Story(owner)
    story.ends()
    address = f"/c/{story.conversation.pk}/prompts/"
    client.post(address, {"input": "First.", "key": "k"})
    refused = client.post(address, {"input": "Second.", "key": "k"}, headers={"HX-Request": "true"})
    assert refused.status_code == 409
    assert "did arrive" in refused.content.decode()
    assert re.search(r'id="key" name="key" value="(?!k")', refused.content.decode())


def test_whoever_was_signed_out_comes_back_to_the_page_of_the_form(client: Client, owner: User) -> None:
    """The URL of a form has no page, so nobody is redirected there."""
    story = Story(owner)
    client.logout()
    page = f"/c/{story.conversation.pk}/"
    for address in ("/c/", f"{page}prompts/"):
        for referer, back in ((f"http://testserver{page}", page), ("http://evil.example/c/1/", "/"), ("", "/")):
            answer = client.post(address, {"input": "Hello."}, headers={"Referer": referer})
            assert answer["Location"] == f"/login/?next={back}"


def test_the_list_tells_what_waits(owner: User) -> None:
    """The user's own conversations with their marks, and the number for title and icon; nobody else's."""
    asking(owner)
    Story(owner, "It works.")
    other = person("bela")
    found = parsed(list_html(owner.pk))
    marks, shown = found.find("marks"), found.find("list")
    assert marks
    assert shown
    assert marks.version == "1"
    assert "Run it now." in shown.text()
    assert "It works." in shown.text()
    assert "Run it now." not in list_html(other.pk)
    assert list_html(owner.pk) == list_html(owner.pk)


def test_what_a_model_writes_is_inert_in_a_push(owner: User) -> None:
    """A draft is hostile like any text: no script, no javascript URL, on the page or in a frame (T-51)."""
    story = Story(owner, "<script>said</script>")
    story.asks_model()
    live = LivePage(story.conversation.pk)
    hostile = "<script>alert(1)</script> [x](javascript:alert(1)) <img src=x onerror=alert(1)>"
    hostile += "\n\n```<script>\n</code><script>"
    html = live.changed([story.prompt.pk])
    for end in range(1, len(hostile) + 1):
        draft(story, "1", hostile[:end])
        html += live.drafted()
    html += fragment(owner, story.conversation)
    for forbidden in ("<script", "<img", 'href="javascript'):
        assert forbidden not in html


def test_widgets_are_drawn_by_the_template_of_their_name(
    client: Client, owner: User, tmp_path: Path, settings: object
) -> None:
    """An app renders its widgets; with a bad name, or a missing or failing template, the fallback text is shown."""
    (tmp_path / "widgets").mkdir()
    (tmp_path / "widgets" / "bars.html").write_text("<b>{{ data.month }}</b>")
    (tmp_path / "widgets" / "broken.html").write_text("{% include data.none %}")
    templates = settings.TEMPLATES  # type: ignore[attr-defined]
    settings.TEMPLATES = [{**templates[0], "DIRS": [*templates[0]["DIRS"], tmp_path]}]  # type: ignore[attr-defined]
    story = Story(owner)
    story.asks_model()
    call = story.call("files.read", path="a")
    story.answers(call)
    for name in ("bars", "broken", "../bars", "none"):
        story.emits(call, "widget", widget=name, data={"month": "<July>"}, fallback=f"In words: {name}")
    html = client.get(f"/c/{story.conversation.pk}/").text
    assert "<b>&lt;July&gt;</b>" in html
    assert "In words: bars" not in html
    for name in ("broken", "../bars", "none"):
        assert f"In words: {name}" in html


@pytest.mark.parametrize("fallback", ["", "Look here."])
def test_a_widget_without_data_is_drawn(
    client: Client, owner: User, tmp_path: Path, settings: object, fallback: str
) -> None:
    """A widget may have nothing but its name. After a redaction it is not rendered, and nothing is logged."""
    (tmp_path / "widgets").mkdir()
    (tmp_path / "widgets" / "banner.html").write_text("<b>Drawn</b>")
    templates = settings.TEMPLATES  # type: ignore[attr-defined]
    settings.TEMPLATES = [{**templates[0], "DIRS": [*templates[0]["DIRS"], tmp_path]}]  # type: ignore[attr-defined]
    story = Story(owner)
    story.asks_model()
    call = story.call("files.read", path="a")
    story.answers(call)
    story.emits(call, "widget", widget="banner", data={}, fallback=fallback)
    story.emits(call, "widget", widget="banner", data={"by": "Ann"}, fallback=fallback)
    story.ends()
    assert client.get(f"/c/{story.conversation.pk}/").text.count("<b>Drawn</b>") == 2
    redact(story.conversation, [Row.objects.filter(type="widget").latest("seq").seq], owner, "A name.")
    assert client.get(f"/c/{story.conversation.pk}/").text.count("<b>Drawn</b>") == 1


def test_pages_allow_our_own_scripts_only(client: Client, owner: User) -> None:
    """No inline script, no style attribute, no foreign URL (T-51)."""
    story, _ = asking(owner)
    for address in ("/", "/new/", f"/c/{story.conversation.pk}/"):
        response = client.get(address)
        assert "script-src 'self'; connect-src 'self'" in response["Content-Security-Policy"]
        assert "unsafe" not in response["Content-Security-Policy"]
        assert " style=" not in response.text
        assert "<script>" not in response.text
    assert render_to_string("base.html").count("<script") == 0  # nothing for who is not signed in


def test_a_turn_that_began_and_ended_between_two_frames_brings_the_dock(ann: User) -> None:
    """The answer to the message showed the page a dock that works: it must not stay."""
    story = Story(ann)
    story.ends()
    live = LivePage(story.conversation.pk)
    live.changed([story.prompt.pk])
    more = Story(ann, conversation=story.conversation)
    more.ends()
    assert 'id="act"' in live.changed([more.prompt.pk])
