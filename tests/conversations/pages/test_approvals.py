"""Deciding in the chat: who may, with which forms, and that nothing is decided but what was shown."""

from __future__ import annotations

import html as htmllib
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents.engine.schema import schema_digest
from agents.plugins.shell.tools import run
from conversations.approvals.decisions import decide
from conversations.approvals.many import TOGETHER_MOST
from conversations.display.shapes.outputs import outputs_of
from conversations.models import Conversation, GateState, Output, State, Step
from conversations.pages.chat.live import catch_up
from conversations.prompts.start import start_conversation
from tests.budget import share
from tests.conversations.support import Story, asking, interrupted, person
from tests.engine.support import digest_of, shown_of

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def owner(client: Client) -> User:
    user = person("anna", first_name="Anna")
    client.force_login(user)
    return user


def command(owner: User, text: str = "ls -la", **more: Any) -> tuple[Story, Output]:
    """A command that waits for approval."""
    payload = {"command": text}
    asked = {
        "digest": digest_of(run, payload),
        "schema": schema_digest(run.input),
        "facts": shown_of(run, payload).recorded["facts"],
    }
    return asking(owner, text, **asked | more)


def batch(owner: User, *commands: str) -> tuple[Story, list[Output]]:
    """Commands of one answer that wait for approval."""
    story = Story(owner, "Please run them.")
    story.asks_model()
    calls = [story.call("shell.run", command=each) for each in commands]
    story.answers(*calls)
    outputs = [story.gate(call) for call in calls]
    story.pauses()
    return story, outputs


def at(name: str, output: Output) -> str:
    return reverse(name, args=[output.pk])


def page(conversation: Conversation, **asked: int) -> str:
    return f"{conversation.get_absolute_url()}{''.join(f'?{name}={pk}' for name, pk in asked.items())}"


def fresh(output: Output) -> Output:
    return Output.objects.get(pk=output.pk)


def said(output: Output, decision: str = "approve", **more: str) -> dict[str, str]:
    return {"decision": decision, "digest": output.digest, **more}


def edited(output: Output, text: str, **more: str) -> dict[str, str]:
    return said(output, edited="1", **{"text-0": text, "number-1": ""} | more)


def words(html: str) -> str:
    """Return the text of a page, without markup."""
    return re.sub(r"\s+", " ", htmllib.unescape(re.sub("<[^>]*>", "", html)))


def test_a_card_shows_the_call_whole_and_its_owner_decides_it(client: Client, owner: User) -> None:
    story, output = command(owner, "make all\nrm -r build", risk="high", expires_at="2020-01-01T00:00:00+00:00")
    html = client.get(page(story.conversation)).text
    card = html[html.index('<article class="ask"') : html.index("</article>")]
    for shown in ("Run a command", "Full command", "Approve and run", "Edit"):
        assert shown in card
    assert '<p class="why">' not in card, "the command says it itself"
    for text in ("make all", "rm -r build", "at most 60 seconds", "Expires "):
        assert text in words(card)
    assert f'name="digest" value="{output.digest}"' in card
    assert 'aria-labelledby="a-' in card
    assert "decide in the admin" not in html.lower()


@pytest.mark.parametrize(("decision", "gate"), [("approve", GateState.APPROVED), ("reject", GateState.REJECTED)])
@pytest.mark.parametrize("htmx", [False, True])
def test_a_decision_is_one_step_and_the_page_tells(
    client: Client, owner: User, decision: str, gate: str, htmx: bool
) -> None:
    story, output = command(owner)
    response = client.post(
        at("decide", output), said(output, decision, reason="Not\r\ntoday."), headers=HTMX if htmx else {}
    )
    after = fresh(output)
    assert (after.gate, after.decided_by, after.via) == (gate, f"user:{owner.pk}", "page")
    assert after.note == ("Not\ntoday." if decision == "reject" else "")
    story.prompt.refresh_from_db()
    assert story.prompt.state == State.RUNNING
    if htmx:
        assert (response.status_code, response["HX-Reswap"]) == (200, "none")
        assert f'id="a-{output.pk}"' in response.text
        assert f"{after.get_gate_display()} by you" in words(response.text)
    else:
        assert response["Location"] == f"{story.conversation.get_absolute_url()}#now"
    shown = client.get(page(story.conversation)).text
    assert f"{after.get_gate_display()} by you in the chat, just now" in words(shown)
    assert 'class="ask"' not in shown


def test_after_a_decision_the_next_that_waits_is_shown(client: Client, owner: User) -> None:
    story, (first, second, third) = batch(owner, "a", "b", "c")
    for output, then in ((second, f"a-{third.pk}"), (third, f"a-{first.pk}"), (first, "now")):
        response = client.post(at("decide", output), said(output))
        assert response["Location"] == f"{story.conversation.get_absolute_url()}#{then}"


def test_an_edit_opens_as_a_form_and_is_approved_as_edited(client: Client, owner: User) -> None:
    story, output = command(owner, "  make \n\n all\t")
    for html in (
        client.get(at("card", output), {"as": "edit"}, headers=HTMX).text,
        client.get(page(story.conversation, edit=output.pk)).text,
    ):
        for shown in ("Approve as edited", "Undo my changes", "The command, as typed into bash.", "default: 60"):
            assert shown in html
        assert "\n  make \n\n all\t</textarea>" in html
        assert "Approve and run" not in html
    response = client.post(at("decide", output), edited(output, "  make \r\n\r\n tests\t"), headers=HTMX)
    assert response.status_code == 200
    (decided,) = Step.objects.filter(path=output.gate_path, type="action_result")
    changed = {"command": "  make \n\n tests\t"}
    assert decided.content == {
        "decision": "approve",
        "digest": digest_of(run, changed),
        "input": changed,
        "facts": shown_of(run, changed).recorded["facts"],
        "via": "page",
    }
    shown = words(client.get(page(story.conversation)).text)
    assert "Edited and approved by you in the chat" in shown
    assert "View the original input" in shown


def test_a_form_that_nobody_changed_is_a_plain_approval(client: Client, owner: User) -> None:
    _, output = command(owner, "make all")
    client.post(at("decide", output), edited(output, "make all"))
    (decided,) = Step.objects.filter(path=output.gate_path, type="action_result")
    assert decided.content == {"decision": "approve", "digest": output.digest, "via": "page"}


def test_other_facts_are_shown_before_the_edit_is_approved(client: Client, owner: User) -> None:
    _, output = command(owner)
    sent = edited(output, "ls", **{"number-1": "90"})
    response = client.post(at("decide", output), sent, headers=HTMX)
    assert response.status_code == 409
    assert "Not decided yet" in response.text
    assert "at most 90 seconds" in words(response.text)
    assert "at most 60 seconds" not in words(response.text)
    assert "\nls</textarea>" in response.text
    found = re.search('name="seen" value="([0-9a-f]{64})"', response.text)
    assert found
    assert fresh(output).gate == GateState.PENDING
    again = client.post(at("decide", output), sent | {"number-1": "91", "seen": found[1]}, headers=HTMX)
    assert again.status_code == 409
    assert client.post(at("decide", output), sent | {"seen": found[1]}).status_code == 302
    assert Step.objects.get(path=output.gate_path, type="action_result").content["digest"] == found[1]


def test_what_was_decided_is_shown_as_the_person_agreed_to_it(client: Client, owner: User) -> None:
    """After an edit: the facts of the edited call, and the agent's reason for what it proposed."""
    owner.is_staff = owner.is_superuser = True
    owner.save()
    story, output = command(owner)
    admin = f"/admin/conversations/approval/{output.pk}/change/"
    assert "Run: ls -la" not in words(client.get(admin).text), "the command says so itself"
    changed = {"command": "ls", "timeout_seconds": 90}
    digest = digest_of(run, changed)
    client.post(at("decide", output), edited(output, "ls", **{"number-1": "90"}) | {"seen": digest})
    for address in (page(story.conversation), admin):
        html = words(client.get(address).text)
        assert "at most 90 seconds" in html
        assert "at most 60 seconds" not in html
    assert "Run: ls -la" not in words(client.get(admin).text)
    listed = client.get("/admin/conversations/approval/", {"state": "approved"}).text
    assert "Run: ls -la" not in words(listed)


@pytest.mark.parametrize("form", ["plain", "edit", "reject"])
def test_alone_on_its_page_a_card_is_sent_as_a_plain_form(client: Client, owner: User, form: str) -> None:
    """With scripts too: there are no turns to merge an answer into, so the answer is the conversation."""
    _, output = command(owner)
    shown = client.get(at("card", output), {"as": form}).text
    refused = client.post(at("decide", output), edited(output, "") if form == "edit" else said(output, "it_ran")).text
    for html in (shown, refused):
        alone = html[html.index('<article class="ask"') : html.index("</article>")]
        alone = re.sub('<div class="live-changes".*?>', "", alone, flags=re.S)  # which decides nothing
        assert f'action="{at("decide", output)}"' in alone
        assert not re.search(r"\bhx-", alone)
    assert "hx-post" in client.get(at("card", output), {"as": form}, headers=HTMX).text


@pytest.mark.parametrize("htmx", [False, True])
@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ({"text-0": "   "}, "must not be blank"),
        ({"text-0": "", "number-1": "0"}, "Enter a value"),
        ({"text-0": "ls", "number-1": "soon"}, "whole number"),
        ({"text-0": "ls", "number-1": "999999"}, "Enter a number from"),
        ({"text-0": "ls \u202e gnp"}, "shown as escapes"),
    ],
)
def test_what_cannot_be_taken_is_kept_and_said_at_its_field(
    client: Client, owner: User, typed: dict[str, str], why: str, htmx: bool
) -> None:
    _, output = command(owner)
    response = client.post(at("decide", output), edited(output, **{"text": ""} | typed), headers=HTMX if htmx else {})
    assert response.status_code == 400
    assert why in words(response.text)
    assert "Nothing was decided" in response.text
    assert (typed.get("number-1", "") or "Approve as edited") in response.text
    assert "\u202e" not in response.text
    assert fresh(output).gate == GateState.PENDING


@pytest.mark.parametrize("htmx", [False, True])
def test_what_was_not_shown_is_not_decided(client: Client, owner: User, htmx: bool) -> None:
    """T-09: a stale card gets 409 and the current one; what was typed is kept."""
    _, output = command(owner)
    headers = HTMX if htmx else {}
    for digest in ("", "0" * 64):
        for sent in (said(output), said(output, "reject", reason="My reason."), edited(output, "make tests")):
            response = client.post(at("decide", output), sent | {"digest": digest}, headers=headers)
            assert response.status_code == 409
            assert "not what you were shown" in response.text
            assert sent.get("reason", sent.get("text-0", "Approve")) in response.text
            assert f'name="digest" value="{output.digest}"' in response.text
    assert fresh(output).gate == GateState.PENDING


def test_what_nobody_was_asked_about_is_not_decided(client: Client, owner: User) -> None:
    """R24: it never was pending; the page leads back."""
    story = Story(owner)
    story.asks_model()
    call = story.call("files.list", path=".")
    story.answers(call)
    output = Output.objects.get(path=call.path)
    card = client.post(f"/approvals/{output.pk}/decide/", {"decision": "approve", "digest": output.digest})
    rows = {"id": output.pk, f"decision_{output.pk}": "approve", f"digest_{output.pk}": output.digest}
    sheet = client.post(f"/c/{story.conversation.pk}/decide/", rows)
    for refused in (card, sheet):
        assert refused.status_code == 409
        assert "Nothing was changed, because nobody was asked to decide this." in refused.text
        assert f'href="{story.conversation.get_absolute_url()}"' in refused.text
    for other in (person("bob"), person("dora", "decide_approval", is_staff=True)):
        client.force_login(other)
        assert client.post(f"/approvals/{output.pk}/decide/", {"decision": "approve"}).status_code == 404
        assert client.post(f"/c/{story.conversation.pk}/decide/", rows).status_code == 404
        own = client.post(f"/c/{start_conversation(other).pk}/decide/", rows)  # in a sheet of their own
        assert "nobody was asked" not in own.text


@pytest.mark.parametrize("htmx", [False, True])
def test_what_somebody_decided_meanwhile_is_told(client: Client, owner: User, htmx: bool) -> None:
    """T-07: the loser of a race sees the decision, who made it, and that their own was not recorded."""
    _, output = command(owner)
    mara = person("mara", "decide_approval", first_name="Mara")
    decide(output.pk, mara, "reject", digest=output.digest, via="admin", reason="Use the template.")
    response = client.post(at("decide", output), edited(output, "ls"), headers=HTMX if htmx else {})
    assert response.status_code == 409
    for text in ("Not decided.", "Rejected by Mara in the admin", "Use the template."):
        assert text in words(response.text)
    assert "Approve" not in words(response.text)
    card = client.get(at("card", output), {"as": "edit"}, headers=HTMX)
    assert "Rejected by Mara" in words(card.text)


def test_who_may_not_decide_sees_who_may(client: Client, owner: User) -> None:
    owner.groups.clear()
    person("mara", "decide_approval", first_name="Mara", is_staff=True)
    story, output = command(owner)
    for html in (client.get(page(story.conversation, edit=output.pk)).text, client.get(at("card", output)).text):
        assert "Mara can decide this under Approvals." in words(html)
        assert 'name="decision"' not in html
    for sent in (said(output), edited(output, "ls"), said(output, "reject")):
        response = client.post(at("decide", output), sent)
        assert response.status_code == 403
        assert 'name="decision"' not in response.text
    assert fresh(output).gate == GateState.PENDING


@pytest.mark.parametrize("name", ["decide", "card"])
def test_others_find_nothing(client: Client, owner: User, name: str) -> None:
    """Neither another user, nor one who decides for others in the admin."""
    story, output = command(owner)
    for other in (person("bela"), person("chief", is_superuser=True, is_staff=True)):
        client.force_login(other)
        response = client.post(at(name, output), said(output)) if name == "decide" else client.get(at(name, output))
        assert response.status_code == 404
        sheet = reverse("sheet", args=[story.conversation.pk])
        assert client.get(sheet).status_code == 404
        assert client.post(sheet, {"id": output.pk, f"decision_{output.pk}": "approve"}).status_code == 404
    client.force_login(owner)
    text = Story(owner)
    assert client.post(reverse("decide", args=[10**6]), said(output)).status_code == 404
    assert text.prompt.pk
    assert fresh(output).gate == GateState.PENDING


def test_nothing_is_decided_by_looking(client: Client, owner: User) -> None:
    """T-47: GET and HEAD change nothing, whatever their URL says."""
    story, output = command(owner)
    query = f"?decision=approve&digest={output.digest}&id={output.pk}&decision_{output.pk}=approve"
    for ask in (client.get, client.head, client.put, client.delete, client.patch):
        assert ask(f"{at('decide', output)}{query}").status_code == 405
    assert client.post(at("card", output)).status_code == 405
    assert client.get(f"{reverse('sheet', args=[story.conversation.pk])}{query}&all=approve").status_code == 200
    client.head(f"{reverse('sheet', args=[story.conversation.pk])}{query}")
    client.get(f"{page(story.conversation)}{query}")
    assert fresh(output).gate == GateState.PENDING


def test_what_comes_from_elsewhere_is_refused(owner: User) -> None:
    """T-47: a POST without the CSRF token."""
    story, output = command(owner)
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    sheet = {"id": output.pk, f"decision_{output.pk}": "approve", f"digest_{output.pk}": output.digest}
    assert client.post(at("decide", output), said(output)).status_code == 403
    assert client.post(at("decide", output), said(output), headers=HTMX).status_code == 403
    assert client.post(reverse("sheet", args=[story.conversation.pk]), sheet).status_code == 403
    assert fresh(output).gate == GateState.PENDING


def test_strangers_are_sent_to_the_login(client: Client, owner: User) -> None:
    story, output = command(owner)
    client.logout()
    for response in (
        client.post(at("decide", output), said(output)),
        client.get(at("card", output)),
        client.get(reverse("sheet", args=[story.conversation.pk])),
    ):
        assert response["Location"].startswith("/login/")
    assert fresh(output).gate == GateState.PENDING


@pytest.mark.parametrize("decision", ["", "it_ran", "answer", "cancelled"])
def test_a_word_that_is_no_answer_decides_nothing(client: Client, owner: User, decision: str) -> None:
    _, output = command(owner)
    assert client.post(at("decide", output), said(output, decision)).status_code == 400
    assert fresh(output).gate == GateState.PENDING


@pytest.mark.parametrize(("decision", "gate"), [("it_ran", GateState.ANSWERED), ("run_again", GateState.APPROVED)])
def test_an_interrupted_call_is_answered_with_one_of_three(
    client: Client, owner: User, decision: str, gate: str
) -> None:
    story, output = interrupted(owner)
    html = client.get(page(story.conversation)).text
    for shown in ("did this run?", "It ran", "It did not run", "Run again", "counts as a new approval.", "It started"):
        assert shown in words(html)
    assert "Approve" not in words(html)
    client.post(at("decide", output), said(output, decision))
    assert fresh(output).gate == gate


def test_from_two_on_a_bar_leads_to_the_sheet(client: Client, owner: User) -> None:
    story, (first, second) = batch(owner, "a", "b")
    html = client.get(page(story.conversation)).text
    assert 'class="batch"' in html
    for output in (first, second):
        assert f'href="#a-{output.pk}"' in html
    assert "1 of 2" in words(html)
    sheet = reverse("sheet", args=[story.conversation.pk])
    assert f'action="{sheet}"' in html
    assert client.get(sheet, {"all": "approve"}).text.count('value="approve" data-says="approve" checked') == 2
    assert client.get(sheet, {"all": "reject"}).text.count('value="reject" data-says="reject" checked') == 2
    assert client.get(sheet).text.count('value="leave" checked') == 2
    client.post(at("decide", first), said(first))
    assert 'class="batch"' not in client.get(page(story.conversation)).text


def sheet_of(*outputs: Output, **decided: str) -> dict[str, Any]:
    sent: dict[str, Any] = {"id": [output.pk for output in outputs]}
    for place, output in enumerate(outputs):
        sent[f"digest_{output.pk}"] = output.digest
        sent[f"decision_{output.pk}"] = decided.get(f"d{place}", "leave")
        sent[f"reason_{output.pk}"] = f"Reason {place}."
    return sent


def test_the_sheet_shows_each_whole_and_gives_each_its_verdict(client: Client, owner: User) -> None:
    story, outputs = batch(owner, "echo a\u202e", "echo b", "echo c")
    address = reverse("sheet", args=[story.conversation.pk])
    html = client.get(address, {"all": "approve"}).text
    for shown in ("echo a", "U+202E", "echo b", "echo c", "Decide 3 actions"):
        assert shown in words(html)
    assert "\u202e" not in html
    response = client.post(address, sheet_of(*outputs, d0="approve", d1="reject", d2="approve"))
    assert response["Location"] == f"{story.conversation.get_absolute_url()}#now"
    assert [fresh(output).gate for output in outputs] == [GateState.APPROVED, GateState.REJECTED, GateState.APPROVED]
    assert [fresh(output).note for output in outputs] == ["", "Reason 1.", ""]
    story.prompt.refresh_from_db()
    assert story.prompt.state == State.RUNNING


def test_one_that_is_refused_stops_no_other_on_the_sheet(client: Client, owner: User) -> None:
    story, outputs = batch(owner, "a", "b", "c")
    mara = person("mara", "decide_approval", first_name="Mara")
    decide(outputs[0].pk, mara, "reject", digest=outputs[0].digest, via="api")
    sent = sheet_of(*outputs, d0="approve", d1="approve", d2="reject") | {f"digest_{outputs[1].pk}": "0" * 64}
    response = client.post(reverse("sheet", args=[story.conversation.pk]), sent)
    assert response.status_code == 409
    shown = words(response.text)
    for text in (
        "this is already rejected",
        "not what you were shown",
        "Rejected by Mara over the API",
        "Rejected by you",
    ):
        assert text in shown
    assert [fresh(output).gate for output in outputs] == [GateState.REJECTED, GateState.PENDING, GateState.REJECTED]


def test_the_sheet_decides_only_what_its_conversation_asks(client: Client, owner: User) -> None:
    story, _ = batch(owner, "a", "b")
    _, elsewhere = command(owner)
    response = client.post(reverse("sheet", args=[story.conversation.pk]), sheet_of(elsewhere, d0="approve"))
    assert response.status_code == 302
    assert fresh(elsewhere).gate == GateState.PENDING
    many = {"id": list(range(1, TOGETHER_MOST + 2))} | {"x": "1"}
    assert client.post(reverse("sheet", args=[story.conversation.pk]), many).status_code == 400
    for odd in ("x", "9" * 30, "-1", ""):
        assert client.post(reverse("sheet", args=[story.conversation.pk]), {"id": odd}).status_code == 302


HIDDEN = {
    "U+202E": "\u202e",
    "U+200B": "\u200b",
    "U+E0100": "\U000e0100",
    "U+2028": "\u2028",
    "U+001B": "\x1b[31m",
    "10,000 blanks": " " * 10_000,
    "200": "\n" * 200,
}


@pytest.mark.parametrize(
    ("reason", "says_more"),
    [
        ("Run: ls -la", False),
        ("ls -la", False),
        ("Proposed by planning model.", False),
        ("Not after six: ls -la -R", True),
        ("It leaves the site.", True),
        ("Run: ls -la (its approval rule failed: no idea)", True),
    ],
)
def test_a_reason_stands_where_it_says_more_than_the_call(
    client: Client, owner: User, reason: str, says_more: bool
) -> None:
    story, _ = command(owner, reason=reason)
    assert ('<p class="why">' in client.get(page(story.conversation)).text) is says_more


@pytest.mark.parametrize("mark", share(list(HIDDEN), of=3))
@pytest.mark.parametrize("where", ["command", "path", "reason", "facts"])
def test_nothing_on_a_card_hides(client: Client, owner: User, mark: str, where: str) -> None:
    """T-45: in the chat, pushed, in the edit form, on the sheet, in the admin; and exactly by the API."""
    text = f"echo safe{HIDDEN[mark]}; rm -rf x"
    more: dict[str, Any] = {"reason": text} if where == "reason" else {"facts": [text]} if where == "facts" else {}
    if where == "path":
        story = Story(owner)
        story.asks_model()
        call = story.call("files.write", path=text)
        story.answers(call)
        output = story.gate(call)
        story.pauses()
    else:
        story, output = command(owner, text if where == "command" else "ls", **more)
    owner.is_staff = owner.is_superuser = True
    owner.save()
    pages = [
        client.get(page(story.conversation)).text,
        client.get(at("card", output), headers=HTMX).text,
        client.get(page(story.conversation, reject=output.pk)).text,
        client.get(reverse("sheet", args=[story.conversation.pk])).text,
        client.get(f"/admin/conversations/approval/{output.pk}/change/").text,
        catch_up(story.conversation.pk, 0)[0],
    ]
    marked = "199 empty lines" if (where, mark) == ("command", "200") else mark
    for html in pages:
        assert marked in words(html)
        assert "rm -rf x" in words(html)
        hidden = HIDDEN[mark]
        assert hidden[0] not in html or hidden[0] in " \n"
        assert " " * 1_000 not in html
        assert "\n" * 100 not in html
    shown: Any = next(each.json_value() for each in outputs_of(story.prompt) if each.id == output.pk)
    told = {
        "command": shown["input"].get("command"),
        "path": shown["input"].get("path"),
        "reason": shown["approval"]["reason"],
        "facts": shown["approval"]["facts"][:1],
    }
    assert told[where] == ([text] if where == "facts" else text)


def test_64_kb_are_shown_whole(client: Client, owner: User) -> None:
    """T-45: nothing is cut off, and no part of the card scrolls on its own."""
    long = " ".join(f"word{n}" for n in range(9_000)) + " the-end"
    assert len(long) > 64 * 1024
    story, output = asking(owner, long)
    for html in (client.get(page(story.conversation)).text, client.get(at("card", output), headers=HTMX).text):
        shown = words(html)
        assert f"{long[:200]}" in shown
        assert "word8999 the-end" in shown
        assert shown.index("the-end") < shown.index("Approve and run")


def test_hidden_characters_are_spelled_out_in_the_form_of_an_edit(client: Client, owner: User) -> None:
    """T-45: what the agent asked for comes back exactly, though nobody could type it."""
    text = "echo \u202e\u200b\x1b[31m\r\n\U000e0100 x"
    _, output = command(owner, text)
    html = client.get(at("card", output), {"as": "edit"}, headers=HTMX).text
    assert "\\u202e\\u200b\\u001b[31m\\r\\n\\udb40\\udd00" in html
    found = re.search(r'name="(json-\d+)"[^>]*>\n([^<]*)</textarea>', html)
    assert found
    sent = said(output, edited="1") | {found[1]: htmllib.unescape(found[2])}
    client.post(at("decide", output), sent)
    assert Step.objects.get(path=output.gate_path, type="action_result").content["digest"] == output.digest


def test_what_is_pushed_is_what_a_page_shows(client: Client, owner: User) -> None:
    """A card rendered without a request has the same forms; the page fills in their token."""
    story, output = command(owner)
    html, _ = catch_up(story.conversation.pk, 0)
    assert f'hx-post="{at("decide", output)}"' in html
    assert "csrfmiddlewaretoken" not in html
    assert "Approve and run" in html


def test_in_the_admin_an_edit_is_the_same_form(client: Client, owner: User) -> None:
    chief = person("chief", first_name="Mara", is_superuser=True, is_staff=True)
    story, output = command(owner, "make all")
    client.force_login(chief)
    address = f"/admin/conversations/approval/{output.pk}/change/"
    assert "?as=edit" in client.get(address).text
    html = client.get(address, {"as": "edit"}).text
    assert "\nmake all</textarea>" in html
    refused = client.post(address, edited(output, "make tests", **{"number-1": "x"}))
    assert refused.status_code == 400
    assert "make tests" in refused.text
    assert "whole number" in refused.text
    changed = client.post(address, edited(output, "make tests", **{"number-1": "5"}))
    assert changed.status_code == 409
    assert "at most 5 seconds" in words(changed.text)
    assert client.post(address, edited(output, "make tests")).status_code == 302
    assert (fresh(output).via, fresh(output).decided_by) == ("admin", f"user:{chief.pk}")
    client.force_login(owner)
    assert "Edited and approved by Mara in the admin" in words(client.get(page(story.conversation)).text)


def test_the_admin_loads_what_keeps_it_up_to_date(client: Client, owner: User) -> None:
    client.force_login(person("chief", is_superuser=True, is_staff=True))
    _, output = command(owner)
    for address in ("/admin/", "/admin/conversations/approval/", f"/admin/conversations/approval/{output.pk}/change/"):
        assert "conversations/admin-live.js" in client.get(address).text
