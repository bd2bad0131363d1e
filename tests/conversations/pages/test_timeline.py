"""The timeline: every kind of output, gates before and after the decision, and how a turn ended."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils.html import strip_tags

from agents.engine.closing import HAD_BEGUN
from agents.engine.ledger import Step
from agents.providers.json.answer import read
from conversations.approvals.decisions import decide
from tests.conversations.support import Story, asking, interrupted, person, says

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client: Client) -> User:
    user = person("anna", first_name="Anna")
    client.force_login(user)
    return user


@pytest.fixture
def chief() -> User:
    return person("chief", first_name="Mara", is_superuser=True, is_staff=True)


def page(client: Client, story: Story) -> str:
    return client.get(f"/c/{story.conversation.pk}/").text


def test_calls_that_nobody_decided_are_folded_into_steps(client: Client, owner: User) -> None:
    story = Story(owner)
    story.asks_model()
    read, missing = story.call("files.read", path="a.txt"), story.call("files.read", path="b.txt")
    story.answers(says("I look."), read, missing, tokens=600)
    story.comes_to(read, "content of a")
    story.fails(missing, "not_found", "There is no b.txt.")
    story.ends()
    html = page(client, story)
    assert "2 steps: read a.txt, read b.txt; 1 failed" in html
    assert "content of a" in html
    assert "There is no b.txt." in html
    assert "1 round · 1,200 tokens" in html


@pytest.mark.parametrize("begun", [True, False])
def test_a_command_that_was_stopped_says_that_some_of_it_may_have_happened(
    client: Client, owner: User, *, begun: bool
) -> None:
    """Without opening anything, beside the decision. One that never began does not say so."""
    story, output = asking(owner)
    decide(output.pk, owner, "approve", digest=output.digest, via="page")
    call = Step("model", "action_call", {"policy": "shell.run"}, path=output.path)
    if begun:
        story.begins(call)
    story.fails(call, "cancelled", f"Stopped before it was done. {HAD_BEGUN if begun else ''}")
    story.ends("cancelled", "cancelled")
    shown = page(client, story)
    assert ("This was stopped while it ran: part of it may already have been done." in shown) == begun


def test_a_step_that_was_stopped_says_that_some_of_it_may_have_happened(client: Client, owner: User) -> None:
    """In the line that sums up the steps."""
    story = Story(owner)
    story.asks_model()
    call = story.call("files.read", path="a.txt")
    story.answers(call)
    story.begins(call)
    story.fails(call, "cancelled", f"Stopped before it was done. {HAD_BEGUN}")
    story.ends("cancelled", "cancelled")
    assert "1 step: read a.txt, stopped while it ran: part of it may already have been done" in page(client, story)


def test_what_a_call_emits_stands_after_it(client: Client, owner: User) -> None:
    story = Story(owner)
    story.asks_model()
    first, second = story.call("files.read", path="a.txt"), story.call("files.read", path="b.txt")
    story.answers(first, second)
    story.emits(second, "widget", widget="bars", data={}, fallback="July <640>")
    story.emits(first, "file", file=7, name="list\u202e.csv", summary="Four rows")
    story.emits(first, "from-elsewhere", anything=1)
    html = page(client, story)
    assert html.index("1 step: read a.txt") < html.index("Four rows") < html.index("July &lt;640&gt;")
    assert 'href="/files/7/"' in html
    assert "\u202e" not in html


def test_thoughts_and_unreadable_answers_stand_in_the_details(client: Client, owner: User) -> None:
    story = Story(owner)
    story.asks_model()
    story.answers(Step("model", "reasoning", {"text": "Perhaps so."}))
    story.asks_model()
    raw = '{"tool": "nonsense" nonsense}'
    message = f"{read(raw).problem} This was try 1 of 3."
    bad = {"error": True, "code": "parse_failure", "raw": raw, "message": message}
    story.append(Step("model", "action_result", bad, path="2"))
    html = page(client, story)
    assert "Perhaps so." in re.findall(r'<details class="step">.*?</details>', html, re.S)[0]
    assert "The model&#x27;s answer could not be read (try 1 of 3)" in html
    assert "It is not valid JSON: Expecting &#x27;,&#x27; delimiter.<" in html
    assert "nonsense" not in html, "calls may stand in it"
    assert "To use a tool" not in html, "that is for the model"


def test_a_card_shows_all_there_is_to_know(client: Client, owner: User) -> None:
    story, output = asking(owner, "echo 1 &&\n  echo 2", facts=["In its folder.", "Not sandboxed: it can do anything."])
    html = page(client, story)
    assert "<title>(1) Run it now." in html
    card = re.findall(r'<article class="ask".*?</article>', html, re.S)[0]
    assert [
        re.sub("<.*?>", "", line)
        for line in re.findall(r'<span class="ln">(.*?)</span>\s*(?=<span class="ln"|</code)', card)
    ] == [
        "echo 1 &amp;&amp;",
        "  echo 2",
    ]
    for words in ("Run a command", "Not sandboxed</span>", "In its folder.", "asked", "Expires "):
        assert words in card
    assert card.index("Not sandboxed") < card.index("In its folder.")
    assert f'action="/approvals/{output.pk}/decide/"' in card
    assert "Waiting for you" in html


def test_who_may_not_decide_is_told_who_may(client: Client, owner: User) -> None:
    owner.groups.clear()
    story, output = asking(owner)
    assert "Nobody can decide this yet" in page(client, story)
    person("chief", first_name="Mara", is_superuser=True, is_staff=True)
    html = page(client, story)
    assert "Mara can decide this under Approvals." in html
    assert f'action="/approvals/{output.pk}/decide/"' not in html
    assert "Waiting for someone else" in html


def test_input_that_is_no_command_is_shown_field_by_field(client: Client, owner: User) -> None:
    story = Story(owner)
    story.asks_model()
    call = story.call("mail.send", body="Dear <all>,\nhello", to=["a@b.example", "c@d.example"], urgent=False, note="")
    story.answers(call)
    story.gate(call, reason="Tell them.", risk="exfiltration")
    story.pauses()
    html = page(client, story)
    assert "Leaves the site" in html
    assert "Dear &lt;all&gt;,\nhello" in html
    listed = "[\n  &quot;a@b.example&quot;,\n  &quot;c@d.example&quot;\n]"
    assert listed in strip_tags(html), "no schema says that it is no text"
    assert re.search(r"<dt>urgent</dt>\s*<dd\s*>false</dd>", html)
    assert re.search(r'<dt>note</dt>\s*<dd\s*><span class="faint">empty</span></dd>', html)


@pytest.mark.parametrize(("decision", "line"), [("approve", "Approved by Mara"), ("reject", "Rejected by Mara")])
def test_a_decided_card_is_one_line(client: Client, owner: User, chief: User, decision: str, line: str) -> None:
    reason = "Keep <it>." if decision == "reject" else ""
    story, output = asking(owner)
    decide(output.pk, chief, decision, digest=output.digest, via="admin", reason=reason)
    html = page(client, story)
    assert 'class="ask"' not in html
    assert line in html
    assert ("Keep &lt;it&gt;." in html) is bool(reason)
    assert "<title>Run it" in html


def test_an_interrupted_call_asks_and_is_answered(client: Client, owner: User, chief: User) -> None:
    story, output = interrupted(owner)
    html = page(client, story)
    assert "Run a command: did this run?" in html
    assert "without knowing whether this ran" in html
    decide(output.pk, chief, "it_ran", digest=output.digest, via="admin")
    assert "Answered by Mara" in page(client, story)


def test_a_turn_that_failed_says_why_once(client: Client, owner: User) -> None:
    story = Story(owner)
    story.asks_model()
    call = story.call("files.list", path=".")
    story.answers(call)
    story.comes_to(call, "nothing")
    story.ends("failed", "model_error", "The model did not answer.")
    html = page(client, story)
    assert html.count("The model did not answer.") == 1
    assert "1 finished step was kept." in html
    assert 'role="alert"' in html


def test_a_turn_that_failed_without_a_word_says_so(client: Client, owner: User) -> None:
    story = Story(owner)
    story.ends("failed", "crash_loop")
    assert "It ended before it was finished." in page(client, story)


def test_a_turn_that_works_says_how_to_see_more(client: Client, owner: User) -> None:
    story = Story(owner)
    html = page(client, story)
    assert "Agent is working\u2026" in html
    assert "Reload</a> to see new messages." in re.findall("<noscript>.*?</noscript>", html, re.S)[0]


def test_a_long_conversation_takes_few_queries(
    client: Client, owner: User, django_assert_max_num_queries: object
) -> None:
    story = Story(owner)
    for _ in range(20):
        story.asks_model()
        call = story.call("files.list", path=".")
        story.answers(says("Looking."), call)
        story.comes_to(call, "nothing")
    with django_assert_max_num_queries(20):  # type: ignore[operator]
        page(client, story)
