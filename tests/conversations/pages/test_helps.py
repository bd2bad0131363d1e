"""What helps to decide on a waiting card: what led to it, earlier calls like it, what it has cost, how to undo it."""

from __future__ import annotations

import html as htmllib
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents.engine.ledger import JSON
from agents.engine.tools.tool import Tool
from agents.plugins.files.tools import write_file
from agents.plugins.shell.tools import run
from conversations.approvals.decisions import decide
from conversations.display.earlier import TALLIED_MOST
from conversations.erasure.steps import redact
from conversations.models import Conversation, Output, Prompt, Step
from conversations.prompts.start import cancel_prompt
from tests.conversations.pages.test_approvals import HTMX, batch, command
from tests.conversations.support import Story, interrupted, person, says

pytestmark = pytest.mark.django_db

CLEAN_UP = "workflow:workspace.clean_up"


@pytest.fixture
def ann(client: Client) -> User:
    """Somebody who decides only their own calls."""
    user = person("ann", first_name="Ann")
    client.force_login(user)
    return user


@pytest.fixture
def mara() -> User:
    """Somebody who decides for others too."""
    return person("mara", "decide_approval", first_name="Mara", is_staff=True)


def asked(owner: User, conversation: Conversation | None = None, tool: str = "stock.order", **payload: JSON) -> Output:
    """A call that waits, of a tool that no app here has."""
    story = Story(owner, "Order paper.", conversation)
    story.asks_model()
    call = story.call(tool, **payload)
    story.answers(call, tokens=600)
    output = story.gate(call, reason="Because.", title="Order stock", risk="write")
    story.pauses()
    return output


def decided(output: Output, by: User, decision: str = "approve", **more: Any) -> Output:
    """The call, decided, in a turn that has ended since."""
    done = decide(output.pk, by, decision, digest=output.digest, via="page", **more)
    cancel_prompt(output.prompt_id, output.conversation.owner)
    return done


def words(html: str) -> str:
    """What is read: without the closed halves of what opens, which say the same again."""
    whole = re.sub(r'<p class="led-whole".*?</p>', "", html, flags=re.S)
    read = htmllib.unescape(re.sub("<[^>]*>", "", whole))
    return re.sub(r"\s+([,:])", r"\1", re.sub(r"\s+", " ", read))


def inbox(client: Client, output: Output) -> str:
    return client.get(reverse("approval", args=[output.pk]), headers=HTMX | {"HX-Target": f"a-{output.pk}"}).text


def pages(output: Output) -> list[str]:
    """The pages with the card of this approval."""
    return [
        output.conversation.get_absolute_url(),
        reverse("approval", args=[output.pk]),
        reverse("sheet", args=[output.conversation_id]),
        f"{reverse('approvals-together')}?ids={output.pk}",
        reverse("admin:conversations_approval_change", args=[output.pk]),
        f"{reverse('admin:conversations_approval_together')}?ids={output.pk}",
    ]


# What led to it


def test_a_card_that_stands_alone_says_what_led_to_it(client: Client, mara: User) -> None:
    client.force_login(mara)
    story = Story(mara, "Tidy up, please.\nAnd be careful.")
    story.asks_model()
    call = story.call("shell.run", command="rm -r build")
    story.answers(says("The build is old."), call)
    output = story.gate(call)
    story.pauses()
    chat, *others = pages(output)
    for page in others:
        html = client.get(page).text
        led = words(html[html.index('class="led"') :])
        assert re.search("You asked, just now Tidy up, please. … The agent says The build is old.", led), page
        assert "And be careful." in html, "the rest of the message opens"
    html = client.get(chat).text
    assert 'class="led"' not in html, "there, it stands above the card"
    alone = client.get(reverse("card", args=[output.pk])).text
    assert "You asked, just now" in words(alone), "without scripts, a card has a page of its own"
    assert 'class="led"' not in client.get(reverse("card", args=[output.pk]), headers=HTMX).text


def test_the_message_of_several_calls_stands_at_the_first(client: Client, ann: User) -> None:
    _, outputs = batch(ann, "ls", "pwd")
    html = client.get(reverse("sheet", args=[outputs[0].conversation_id])).text
    assert html.count("You asked") == 1


@pytest.mark.parametrize(
    ("started", "told"),
    [
        ({"origin": "api"}, "Ann asked over the API, just now"),
        ({"origin": "command"}, "Ann asked on the command line, just now"),
        ({"policy": CLEAN_UP}, "Ann started “Clean up a workspace”, just now"),
        ({"origin": "trigger", "asked_by": None}, "Started by a trigger, just now"),
        (
            {"origin": "trigger", "asked_by": None, "policy": CLEAN_UP},
            "“Clean up a workspace” was started by a trigger, just now",
        ),
    ],
)
def test_who_asked_and_how(client: Client, ann: User, mara: User, started: dict[str, Any], told: str) -> None:
    output = asked(ann)
    Prompt.objects.filter(pk=output.prompt_id).update(**started)
    client.force_login(mara)
    assert told in words(inbox(client, output))


# The last approved call like it


def test_a_call_is_compared_with_the_last_that_was_approved(client: Client, ann: User) -> None:
    assert "the last call" not in words(inbox(client, asked(ann, item="paper"))), "there is none"
    Output.objects.pending().update(tool="another.tool")
    decided(asked(ann, item="ink", pieces=5), ann)
    html = words(inbox(client, asked(ann, item="paper", pieces=5)))
    assert "Differs from the last call that you approved, just now: item was ink" in html
    assert "pieces was" not in html
    same = words(inbox(client, asked(ann, item="ink", pieces=5)))
    assert "Same input as the last call that you approved, just now" in same
    more = words(inbox(client, asked(ann, pieces="5", why="Because")))
    assert "approved, just now, in pieces, why, item" in more
    assert 'pieces 5 → is now "5"' in more, "a number is no text"
    assert "why left out → is now Because" in more
    assert "item ink → is now left out" in more


def test_one_of_the_same_conversation_goes_first(client: Client, ann: User) -> None:
    here = decided(asked(ann, item="ink"), ann)
    decided(asked(ann, item="glue"), ann)
    again = asked(ann, here.conversation, item="ink")
    assert "Same input as the last call that you approved in this conversation" in words(inbox(client, again))
    assert "approved in this conversation" in words(client.get(again.conversation.get_absolute_url()).text)


def test_a_long_text_is_compared_line_by_line(client: Client, ann: User) -> None:
    decided(asked(ann, text="Dear all,\nthe shop is open.\n"), ann)
    html = inbox(client, asked(ann, text="Dear all,\nthe shop is closed.\n"))
    assert "the shop is <mark>open</mark>." in html
    assert "the shop is <mark>closed</mark>." in html


def test_what_was_redacted_is_not_compared(client: Client, ann: User) -> None:
    done = decided(asked(ann, item="ink"), ann)
    redact(done.conversation, [done.position], ann, "Too much.")
    html = words(inbox(client, asked(ann, item="paper")))
    assert "Differs" not in html
    assert "The last call like this: approved unchanged" in html


# How the last ten went


def test_the_last_ten_are_counted(client: Client, ann: User) -> None:
    old = decided(asked(ann, item="old"), ann)
    decided(asked(ann, item="first"), ann, "reject")
    for number in range(TALLIED_MOST - 1):
        decided(asked(ann, item=str(number)), ann)
    waiting = asked(ann, old.conversation, item="x")
    assert "item was old" in words(inbox(client, waiting)), "that is of the same conversation, and not among the ten"
    assert "The last 10 calls like this: 9 approved unchanged, 1 rejected" in words(inbox(client, waiting))
    decided(asked(ann, item="last"), ann)
    assert "The last 10 calls like this: 10 approved unchanged" in words(inbox(client, waiting))


def test_one_that_the_line_above_tells_is_not_told_twice(client: Client, ann: User) -> None:
    decided(asked(ann, item="ink"), ann)
    assert "like this" not in words(inbox(client, asked(ann, item="ink")))


def test_edits_and_what_nobody_decided_are_told_apart(client: Client, ann: User) -> None:
    edited = command(ann, "ls -la")[1]
    decided(edited, ann, input={"command": "ls"})
    decided(command(ann)[1], ann)
    late = command(ann)[1]
    Output.objects.filter(pk=late.pk).update(gate="expired", decided_by="system", decided_at=timezone.now())
    granted = command(ann)[1]
    Output.objects.filter(pk=granted.pk).update(gate="approved", decided_by="grant:1", decided_at=timezone.now())
    stopped = command(ann)[1]
    cancel_prompt(stopped.prompt_id, ann)
    html = words(inbox(client, command(ann)[1]))
    assert "The last 3 calls like this: 1 approved unchanged, 1 edited and approved, 1 expired" in html


def test_nobody_is_told_of_calls_that_they_may_not_see(client: Client, ann: User, mara: User) -> None:
    bob = person("bob", first_name="Bob")
    decided(asked(bob, item="secret"), mara)
    decided(asked(bob, item="secret"), mara, "reject")
    waiting = asked(ann, item="paper")
    for page in (reverse("approval", args=[waiting.pk]), *pages(waiting)[:4]):
        html = client.get(page).text
        assert "secret" not in html
        assert "the last call" not in words(html).lower()
    client.force_login(mara)
    html = words(inbox(client, waiting))
    assert "Differs from the last call that you approved, just now: item was secret" in html
    assert "The last 2 calls like this: 1 approved unchanged, 1 rejected" in html
    client.force_login(bob)
    assert "that Mara approved" in words(inbox(client, asked(bob, item="more")))


# What it has cost, and whether it can be undone


def test_the_turn_so_far(client: Client, ann: User) -> None:
    """From the second round on."""
    output = asked(ann)
    assert "This turn so far" not in words(inbox(client, output))
    Prompt.objects.filter(pk=output.prompt_id).update(rounds=2)
    assert "This turn so far: 2 rounds, 1,200 tokens" in words(inbox(client, output))
    assert "$" not in words(inbox(client, output)), "no price is known"
    Prompt.objects.filter(pk=output.prompt_id).update(cost_nano_usd=20_000_000, unpriced=0)
    assert "1,200 tokens, $0.02" in words(inbox(client, output))
    Prompt.objects.filter(pk=output.prompt_id).update(unpriced=1)
    assert "1,200 tokens, at least $0.02" in words(inbox(client, output))


@pytest.mark.parametrize("tool", [run, write_file])
def test_what_a_tool_says_of_undoing_stands_on_the_card_without_it(client: Client, mara: User, tool: Tool) -> None:
    assert tool.undoable
    client.force_login(mara)
    output = command(mara, "ls", undoable=tool.undoable)[1]
    for page in pages(output):
        assert words(client.get(page).text).count(tool.undoable) == 1, page


def test_what_became_of_a_call_asks_for_no_comparison(client: Client, ann: User) -> None:
    html = inbox(client, interrupted(ann)[1])
    assert "What helps to decide" not in html
    assert "This turn so far" not in html


def test_many_cards_take_as_many_queries_as_few(client: Client, mara: User, django_assert_num_queries: Any) -> None:
    client.force_login(mara)
    together = reverse("approvals-together")
    for number in range(3):
        decided(asked(mara, item="ink"), mara)
        decided(command(mara)[1], mara, "approve", input={"command": f"ls {number}"})
    first = [asked(mara, item="a"), command(mara)[1]]
    client.get(f"{together}?ids={first[0].pk},{first[1].pk}")
    with django_assert_num_queries(12) as few:
        client.get(f"{together}?ids={first[0].pk},{first[1].pk}")
    others = [asked(mara, tool=f"stock.t{number}", item="b") for number in range(5)]
    others += [command(mara)[1] for _ in range(5)]
    ids = ",".join(str(each.pk) for each in (*first, *others))
    with django_assert_num_queries(len(few)):
        client.get(f"{together}?ids={ids}")


# What somebody changes


def posted(output: Output, text: str, prefix: str = "") -> dict[str, str]:
    return {f"{prefix}text-0": text}


def test_what_is_typed_is_shown_beside_what_was_asked(client: Client, ann: User) -> None:
    output = command(ann, "ls -la")[1]
    form = client.get(reverse("approval", args=[output.pk]), {"as": "edit"}).text
    assert f'hx-post="/approvals/{output.pk}/changes/"' in form
    assert "What you changed" not in form
    at = reverse("changes", args=[output.pk])
    html = client.post(at, posted(output, "ls -l")).text
    assert "What you changed command ls -la → is now ls -l" in words(html)
    assert "<del>ls -<mark>la</mark></del>" in html
    assert words(client.post(at, posted(output, "ls -la")).text).strip() == ""
    on_sheet = posted(output, "pwd", f"{output.pk}-") | {f"edited_{output.pk}": "1"}
    assert "is now pwd" in words(client.post(at, on_sheet).text)
    assert Step.objects.filter(prompt=output.prompt_id).count() == output.prompt.steps.count()
    assert client.get(at).status_code == 405


def test_what_is_typed_is_shown_only_where_it_can_be_approved(client: Client, ann: User, mara: User) -> None:
    output = command(mara)[1]
    at = reverse("changes", args=[output.pk])
    assert client.post(at, posted(output, "pwd")).status_code == 404
    client.force_login(mara)
    assert "pwd" in client.post(at, posted(output, "pwd")).text
    decide(output.pk, mara, "approve", digest=output.digest, via="page")
    assert client.post(at, posted(output, "pwd")).text.strip() == ""


def test_a_form_that_is_refused_says_what_was_changed(client: Client, ann: User) -> None:
    output = command(ann, "ls -la")[1]
    sent = posted(output, "ls") | {"number-1": "many", "decision": "approve", "edited": "1", "digest": output.digest}
    answer = client.post(reverse("approval", args=[output.pk]), sent)
    assert answer.status_code == 400
    assert "What you changed command ls -la → is now ls" in words(answer.text)


def test_a_decided_card_says_what_was_changed(client: Client, ann: User) -> None:
    output = command(ann, "ls -la")[1]
    decided(output, ann, input={"command": "ls"})
    for page in (output.conversation.get_absolute_url(), reverse("approval", args=[output.pk])):
        assert "What the edit changed command ls -la → is now ls" in words(client.get(page).text)
