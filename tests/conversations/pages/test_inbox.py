"""The inbox: who sees what waits, in which order, what filters and searches find, and what a decision leads to."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents.engine.execution.gates import ANOTHER
from conversations.accounts.names import deciders, first_deciders
from conversations.approvals.decisions import decide
from conversations.approvals.many import TOGETHER_MOST
from conversations.approvals.permissions import allowed_to, barred_from_allowing, count_waiting, may_allow
from conversations.models import Conversation, GateState, Output, Prompt, State
from conversations.pages.approvals.inbox import PAGE, InboxFilter, choices, page
from tests.conversations.pages.test_approvals import HTMX, command, edited, words
from tests.conversations.support import Story, asking, interrupted, person

pytestmark = pytest.mark.django_db

INBOX = "/approvals/"
HOURS = 3600


@pytest.fixture
def mara(client: Client) -> User:
    """Somebody who decides their own calls and those of others, and is not staff."""
    user = person("mara", "decide_approval", first_name="Mara")
    client.force_login(user)
    return user


@pytest.fixture
def jonas() -> User:
    return person("jonas", first_name="Jonas")


def expiring(owner: User, seconds: float | None, text: str = "ls", **more: Any) -> Output:
    """A command that waits, and expires so many seconds from now; None: never."""
    until = "" if seconds is None else (timezone.now() + timedelta(seconds=seconds)).isoformat()
    return command(owner, text, **{"expires_at": until, **more})[1]


def said(output: Output, decision: str = "approve", **more: str) -> dict[str, str]:
    return {"decision": decision, "digest": output.digest, **more}


def at(output: Output, query: str = "") -> str:
    return f"{INBOX}{output.pk}/{query}"


def listed(html: str) -> list[int]:
    """The approvals of a list, in its order."""
    return [int(pk) for pk in re.findall(r'id="r-(\d+)"', html)]


def opened(html: str) -> int | None:
    """The approval that is open beside the list."""
    found = re.search(r'<article class="solo[^"]*" id="a-(\d+)"', html)
    return int(found[1]) if found else None


def fresh(output: Output) -> Output:
    return Output.objects.get(pk=output.pk)


def keys(*outputs: Output) -> list[int]:
    return [output.pk for output in outputs]


# Who sees what


def test_who_decides_for_others_sees_all_and_everybody_else_their_own(client: Client, mara: User, jonas: User) -> None:
    own, theirs = expiring(mara, 10), expiring(jonas, 20)
    html = client.get(INBOX).text
    assert (listed(html), opened(html)) == (keys(own, theirs), own.pk)
    assert "<title>(2) Approvals · Agentsite</title>" in html
    client.force_login(jonas)
    html = client.get(INBOX).text
    assert (listed(html), opened(html)) == (keys(theirs), theirs.pk)
    assert "<title>(1) Approvals · Agentsite</title>" in html
    assert "Mara" not in html
    for asked in (client.get(at(own)), client.post(at(own), said(own))):
        assert asked.status_code == 404
    assert fresh(own).gate == GateState.PENDING


def test_who_may_decide_nothing_has_no_inbox(client: Client, jonas: User) -> None:
    output = expiring(jonas, 10)
    jonas.groups.clear()
    client.force_login(jonas)
    for address in (INBOX, at(output), f"{INBOX}together/?ids={output.pk}"):
        assert client.get(address).status_code == 403
    assert client.post(at(output), said(output)).status_code == 403
    assert 'href="/approvals/"' not in client.get("/").text


def test_the_navigation_counts_what_waits_for_the_reader(client: Client, mara: User, jonas: User) -> None:
    expiring(jonas, 10)
    expiring(mara, 10, who=ANOTHER)
    expiring(jonas, 10, who=ANOTHER)
    link = words(client.get("/").text)
    assert "Approvals 2 waiting" in link
    User.objects.filter(pk=mara.pk).update(is_staff=True)
    assert '<span class="count wait">2</span>' in client.get("/admin/").text
    client.force_login(jonas)
    assert "Approvals 1 waiting" in words(client.get("/").text)


def test_one_query_finds_what_may_allow_allows(mara: User, jonas: User) -> None:
    """For each permission, each owner, whoever asked, and whoever edited."""
    others = [person("own"), person("others", "decide_approval"), person("neither"), person("gone", "decide_approval")]
    others[1].groups.clear()
    others[2].groups.clear()
    people = [User.objects.get(pk=user.pk) for user in (mara, jonas, *others)]
    for owner in people:
        for asker in (owner, mara):
            for who in ("", ANOTHER):
                for editor in ("", f"user:{mara.pk}", f"user:{people[3].pk}"):
                    story, output = asking(owner, who=who)
                    Prompt.objects.filter(pk=story.prompt.pk).update(asked_by=asker)
                    Output.objects.filter(pk=output.pk).update(edited_by=editor)
    User.objects.filter(pk=others[3].pk).update(is_active=False)
    people = [User.objects.get(pk=user.pk) for user in people]
    everything = list(Output.objects.pending().select_related("conversation", "prompt"))
    for user in people:
        wanted = {output.pk for output in everything if may_allow(user, output)}
        assert set(allowed_to(user, Output.objects.pending()).values_list("pk", flat=True)) == wanted, user
        assert count_waiting(user) == len(wanted)


def test_what_waits_for_someone_else_is_apart(client: Client, mara: User, jonas: User) -> None:
    blocked = expiring(mara, 10, who=ANOTHER)
    html = client.get(INBOX).text
    assert listed(html) == []
    assert "Nothing is waiting for you." in html
    html = client.get(INBOX, {"whose": "else"}).text
    assert (listed(html), opened(html)) == ([blocked.pk], blocked.pk)
    assert "Someone else must decide this" in html
    assert "Approve and run" not in html
    assert client.post(at(blocked), said(blocked)).status_code == 400
    assert client.post(at(blocked), said(blocked, "reject")).status_code == 302


def test_the_conversation_of_somebody_else_is_named_and_no_link(client: Client, mara: User, jonas: User) -> None:
    story, output = command(jonas)
    html = client.get(at(output)).text
    for text in ("for Jonas", "in Run it now.", "Jonas asked, just now"):
        assert text in words(html)
    assert story.conversation.get_absolute_url() not in html
    client.force_login(jonas)
    assert f'{story.conversation.get_absolute_url()}#a-{output.pk}"' in client.get(at(output)).text


# The order, groups and pages


def test_what_expires_first_comes_first_in_groups(client: Client, mara: User) -> None:
    never, late = expiring(mara, None), expiring(mara, 72 * HOURS)
    soon, sooner = expiring(mara, 1800), expiring(mara, 900)
    html = client.get(INBOX).text
    assert listed(html) == keys(sooner, soon, late, never)
    groups = re.findall(r'<h2 id="g-[\w-]+"[^>]*>([^<]*)<', html)
    assert groups == ["Expires within the hour", "Expires later", "Does not expire"]
    assert "in 15 min" in words(html)


@pytest.mark.parametrize("expires", [True, False])
def test_pages_follow_each_other_at_equal_times(client: Client, mara: User, expires: bool) -> None:
    """Each approval is on one page, and none is left out, though all expire at once or never."""
    outputs = [expiring(mara, None) for _ in range(2 * PAGE + 3)]
    if expires:
        Output.objects.update(expires_at=timezone.now() + timedelta(hours=1))
    never = expiring(mara, None)
    found, address = list[int](), INBOX
    sizes = []
    while address:
        html = client.get(address).text
        found += listed(html)
        sizes.append(len(listed(html)))
        older = re.search(r'data-older href="([^"]*)"', html)
        address = older[1] if older else ""
    assert found == keys(*outputs, never)
    assert sizes == [PAGE, PAGE, 4]


def test_a_page_begins_where_it_did_though_its_first_were_decided(mara: User) -> None:
    outputs = [expiring(mara, 60 * number) for number in range(1, 6)]
    last = outputs[1]
    decide(last.pk, mara, "reject", digest=last.digest, via="page")
    assert [row.pk for row in page(mara, InboxFilter(), last.pk).rows] == keys(*outputs[2:])
    assert [row.pk for row in page(mara, InboxFilter(), 10**9).rows] == keys(outputs[0], *outputs[2:])


def test_decided_ones_begin_with_the_newest(client: Client, mara: User, jonas: User) -> None:
    outputs = [expiring(jonas, 60 * number) for number in range(1, 4)]
    for output in outputs:
        decide(output.pk, mara, "reject", digest=output.digest, via="inbox", reason="No.")
    Output.objects.update(decided_at=timezone.now())
    expiring(jonas, 10)
    html = client.get(INBOX, {"show": "decided"}).text
    assert listed(html) == keys(*reversed(outputs))
    assert "Rejected by you in the inbox" in words(html)
    assert [row.pk for row in page(mara, InboxFilter("decided"), outputs[2].pk).rows] == keys(outputs[1], outputs[0])
    client.force_login(person("other"))
    assert listed(client.get(INBOX, {"show": "decided"}).text) == []


def test_many_take_as_many_queries_as_few(client: Client, mara: User, django_assert_num_queries: Any) -> None:
    first = expiring(mara, 10)
    client.get(INBOX)
    with django_assert_num_queries(27) as few:
        client.get(INBOX)
    with django_assert_num_queries(11) as next_card:
        client.get(at(first), headers=HTMX)
    for number in range(2 * PAGE):
        expiring(person(f"p{number}"), 20, who=ANOTHER if number % 2 else "")
    with django_assert_num_queries(len(few)):
        client.get(INBOX)
    with django_assert_num_queries(len(next_card)):
        client.get(at(first), headers=HTMX)


def test_an_address_of_no_row_is_not_found(client: Client, mara: User) -> None:
    for address in (f"{INBOX}0/", f"{INBOX}{'9' * 18}/", f"{INBOX}{'9' * 30}/"):
        assert client.get(address).status_code == client.post(address).status_code == 404


def test_a_browser_does_not_go_back_to_what_a_script_was_answered(client: Client, mara: User) -> None:
    output = expiring(mara, 10)
    for address in (INBOX, at(output)):
        for headers in ({}, HTMX):
            assert {"HX-Request", "HX-Target"} <= set(client.get(address, headers=headers)["Vary"].split(", "))


def test_who_else_decides_is_asked_once_for_all_owners(
    client: Client, mara: User, django_assert_num_queries: Any
) -> None:
    """On a sheet of calls that others must decide, each with deciders of its own."""
    outputs = [expiring(person(f"p{n}", first_name=f"P{n}"), 20, who=ANOTHER) for n in range(8)]
    person("last", "decide_approval", first_name="Last")
    blocked = person("blocked", "decide_approval", first_name="Blocked")
    Output.objects.filter(pk__in=keys(*outputs[4:])).update(edited_by=f"user:{mara.pk}")
    Output.objects.filter(pk=outputs[4].pk).update(edited_by=f"user:{blocked.pk}")
    few, many = f"{INBOX}together/?ids={outputs[5].pk}", f"{INBOX}together/?ids={','.join(map(str, keys(*outputs)))}"
    client.get(few)
    with django_assert_num_queries(12):
        client.get(few)
    with django_assert_num_queries(12):
        html = words(client.get(many).text)
    assert html.count("Last or Blocked can decide it under Approvals.") == 3
    for output in outputs:
        barred = barred_from_allowing(fresh(output))
        owner = output.conversation.owner_id
        found = first_deciders([(owner, frozenset(barred))], 2)[owner, frozenset(barred)]
        assert found == list(deciders(User.objects.get(pk=owner), barred)[:2])


# Filters


def test_filters_find_what_they_say(client: Client, mara: User, jonas: User) -> None:
    own, theirs = expiring(mara, 10, risk="read"), expiring(jonas, 20, risk="destructive")
    run = Story(jonas)
    Prompt.objects.filter(pk=run.prompt.pk).update(policy="workflow:shop.order")
    asked = run.asks_person("Which shelf?")
    run.pauses()
    for query, found in {
        "whose=mine": [own],
        "whose=others": [theirs, asked],
        "whose=nonsense": [own, theirs, asked],
        "tool=shell.run": [own, theirs],
        "tool=human": [asked],
        "risk=read": [own, asked],
        "risk=destructive": [theirs],
        "risk=nonsense": [own, theirs, asked],
        f"person={jonas.pk}": [theirs, asked],
        "person=x": [own, theirs, asked],
        f"conversation={own.conversation_id}": [own],
        "conversation=999999": [],
        "workflow=shop.order": [asked],
        "workflow=%00": [own, theirs, asked],
        "workflow=nowhere": [],
        f"person={jonas.pk}&risk=destructive": [theirs],
        "show=decided": [],
    }.items():
        html = client.get(f"{INBOX}?{query}").text
        assert listed(html) == keys(*found), query
        assert opened(html) == (found[0].pk if found else None), query
    for query, searched in (("conversation=999999", False), ("q=nowhere", True)):
        html = client.get(f"{INBOX}?{query}").text
        assert (html.count("No approval matches."), ">Clear the search<" in html) == (1, searched)


def test_filters_offer_what_is_shown(mara: User, jonas: User) -> None:
    expiring(mara, 10)
    story = Story(jonas)
    Prompt.objects.filter(pk=story.prompt.pk).update(policy="workflow:shop.order")
    story.asks_person("Which shelf?")
    offered = choices(mara, InboxFilter())
    assert {name for name, _ in offered.tools} == {"shell.run", "human"}
    assert {each.pk for each in offered.people} == {mara.pk, jonas.pk}
    assert {each.pk for each in offered.conversations} == set(Conversation.objects.values_list("pk", flat=True))
    assert [name for name, _ in offered.workflows] == ["shop.order"]
    of_jonas = choices(jonas, InboxFilter())
    assert ([each.pk for each in of_jonas.people], len(of_jonas.conversations)) == ([jonas.pk], 1)


@pytest.mark.parametrize(
    ("search", "finds"),
    [
        ("make", [0, 1]),
        ("MAKE deploy", [0]),
        ("deploy make", [0]),
        ("set up", [2]),  # the title of the tool
        ("shell.run", [0, 1]),
        ("reason", [2]),
        ("jonas", [1]),
        ("harbour", [2]),  # the title of the conversation
        ("approval", []),  # a name in the JSON of all of them
        ("%", [1]),
        ("nowhere", []),
        ("", [0, 1, 2]),
    ],
)
def test_a_search_looks_into_what_the_list_shows(
    client: Client, mara: User, jonas: User, search: str, finds: list[int]
) -> None:
    outputs = [
        expiring(mara, 10, "make deploy"),
        expiring(jonas, 20, "make 100%"),
    ]
    story = Story(mara)
    story.asks_model()
    call = story.call("project.write", name="shop")
    story.answers(call)
    outputs.append(story.gate(call, reason="A good reason."))
    Conversation.objects.filter(pk=outputs[2].conversation_id).update(title="The harbour")
    assert listed(client.get(INBOX, {"q": search}).text) == [outputs[place].pk for place in finds]


@pytest.mark.parametrize(("search", "finds"), [("5\u03bcm", 2), ("5\u039cM", 2), ("5\u00b5m", 0)])
def test_a_search_takes_letters_for_the_same_wherever_they_stand(
    client: Client, mara: User, search: str, finds: int
) -> None:
    """In a reason as in an input: a capital mu is the same letter, a micro sign is another."""
    expiring(mara, 10, "cut 5\u03bcm")
    story = Story(mara)
    story.asks_model()
    call = story.call("project.write", name="shop")
    story.answers(call)
    story.gate(call, reason="It is cut at 5\u03bcm.")
    assert len(listed(client.get(INBOX, {"q": search}).text)) == finds


# Deciding


@pytest.mark.parametrize("place", ["inbox", "chat", "admin"])
@pytest.mark.parametrize("typed", ["edit", "reason"])
def test_who_lost_the_permission_meanwhile_keeps_what_was_typed(client: Client, place: str, typed: str) -> None:
    """With the reason why nothing was decided, and without a form."""
    jonas = person("jonas", is_staff=True)
    client.force_login(jonas)
    output = expiring(jonas, 60)
    jonas.groups.clear()
    addresses = {"inbox": at(output), "admin": f"/admin/conversations/approval/{output.pk}/change/"}
    sent = edited(output, "make tests") if typed == "edit" else said(output, "reject", reason="make tests")
    response = client.post(addresses.get(place, reverse("decide", args=[output.pk])), sent)
    assert response.status_code == 403
    text = words(response.text)
    assert "You may not decide this. Ask somebody who has the permission." in text
    assert "Your input was not used:" in text
    assert "make tests" in text
    assert 'name="decision"' not in response.text
    assert fresh(output).gate == GateState.PENDING


def test_after_an_edit_that_asks_somebody_else_the_next_that_one_can_decide_is_open(
    client: Client, mara: User, jonas: User
) -> None:
    """The edited call waits as long again, and so has a later place in the list."""
    person("nele", "decide_approval")
    first, second, third = (expiring(jonas, 60 * n, who=ANOTHER if n == 2 else "") for n in (1, 2, 3))
    Output.objects.filter(pk=second.pk).update(asked_at=timezone.now() - timedelta(minutes=10))
    response = client.post(at(second), edited(second, "make tests"))
    assert (fresh(second).gate, fresh(second).edited_by) == (GateState.PENDING, f"user:{mara.pk}")
    assert response["Location"] == at(third, f"?done={second.pk}")
    html = client.get(response["Location"]).text
    assert (listed(html), opened(html)) == (keys(first, third), third.pk)
    assert "Somebody else has to approve it now." in words(html)


def test_on_a_card_one_button_is_the_first(client: Client, mara: User, jonas: User) -> None:
    """What decides several stands beside it, and is none."""
    expiring(jonas, 60)
    assert re.findall(r'class="btn primary"[^>]*>([^<]*)<', client.get(INBOX).text) == ["Approve and run"]


def test_after_a_decision_the_next_is_open(client: Client, mara: User, jonas: User) -> None:
    first, second, third = (expiring(jonas, 60 * number) for number in (1, 2, 3))
    response = client.post(at(second), said(second))
    decided = fresh(second)
    assert (decided.gate, decided.via) == (GateState.APPROVED, "inbox")
    assert response["Location"] == at(third, f"?done={second.pk}")
    html = client.get(response["Location"]).text
    assert (listed(html), opened(html)) == (keys(first, third), third.pk)
    assert "Approved by you: Run a command (ls)." in words(html)
    assert client.post(at(third), said(third, "reject"))["Location"] == at(first, f"?done={third.pk}")
    assert client.post(at(first), said(first))["Location"] == f"{INBOX}?done={first.pk}"
    assert "Nothing is waiting for you." in client.get(INBOX).text
    assert Prompt.objects.get(pk=first.prompt_id).state == State.RUNNING


def test_a_script_gets_the_next_one_and_the_list(client: Client, mara: User, jonas: User) -> None:
    first, second, _ = (expiring(person, 60 * n) for n, person in ((1, jonas), (2, jonas), (3, mara)))
    response = client.post(at(first, f"?person={jonas.pk}"), said(first), headers=HTMX)
    html = response.text
    assert "<html" not in html
    assert (listed(html), opened(html)) == ([second.pk], second.pk)
    assert f'action="/approvals/{second.pk}/?person={jonas.pk}"' in html
    assert 'data-waiting="2"' in html
    assert html.count('hx-swap-oob="merge"') == 3


def test_of_a_later_page_the_next_one_is_open_on_it(client: Client, mara: User) -> None:
    outputs = [expiring(mara, 60 * number) for number in range(1, PAGE + 4)]
    begins = outputs[PAGE - 1]
    html = client.post(at(outputs[PAGE], f"?after={begins.pk}"), said(outputs[PAGE]), headers=HTMX).text
    assert (listed(html), opened(html)) == (keys(*outputs[PAGE + 1 :]), outputs[PAGE + 1].pk)
    html = client.post(at(outputs[PAGE + 1]), said(outputs[PAGE + 1]), headers=HTMX).text  # from elsewhere
    assert (listed(html), opened(html)) == ([outputs[PAGE + 2].pk], outputs[PAGE + 2].pk)


@pytest.mark.parametrize("htmx", [True, False])
def test_what_was_decided_elsewhere_is_said_and_what_was_typed_is_kept(
    client: Client, mara: User, jonas: User, htmx: bool
) -> None:
    output = expiring(jonas, 60)
    decide(output.pk, jonas, "approve", digest=output.digest, via="page")
    sent = said(output, "reject", reason="Not on a Friday.")
    response = client.post(at(output), sent, headers={**HTMX, "HX-Target": f"a-{output.pk}"} if htmx else {})
    assert response.status_code == 409
    shown = words(response.text)
    for text in ("this is already approved", "Approved by Jonas in the chat", "Your input was not used", "on a Friday"):
        assert text in shown
    assert ("<html" in response.text) is not htmx
    assert fresh(output).note == ""


def test_what_was_not_shown_is_not_decided(client: Client, mara: User, jonas: User) -> None:
    output = expiring(jonas, 60)
    response = client.post(at(output), said(output) | {"digest": "0" * 64})
    assert response.status_code == 409
    assert "not what you were shown" in response.text
    assert f'name="digest" value="{output.digest}"' in response.text
    assert fresh(output).gate == GateState.PENDING


def test_what_expired_while_it_was_open_is_not_approved(client: Client, mara: User, jonas: User) -> None:
    output = expiring(jonas, -1)
    response = client.post(at(output), said(output))
    assert response.status_code == 409
    assert "nobody decided it in time" in response.text
    assert fresh(output).gate == GateState.EXPIRED


def test_a_call_is_edited_in_the_inbox(client: Client, mara: User, jonas: User) -> None:
    output = expiring(jonas, 60, "make all")
    card = client.get(at(output, "?as=edit"), headers={**HTMX, "HX-Target": f"a-{output.pk}"}).text
    assert card.strip().startswith('<article class="solo ask"') or '<article class="solo ask"' in card[:300]
    assert "Approve as edited" in card
    response = client.post(at(output), said(output, edited="1", **{"text-0": "make tests", "number-1": ""}))
    assert response.status_code == 302
    assert fresh(output).content["input"]["command"] == "make tests"


def test_an_interrupted_call_and_a_question_are_answered(client: Client, mara: User, jonas: User) -> None:
    _, cut = interrupted(jonas)
    story = Story(jonas)
    asked = story.asks_person("Which one?")
    story.pauses()
    html = client.get(at(cut)).text
    for text in ("It ran", "It did not run", "Run again"):
        assert text in html
    assert client.post(at(cut), said(cut, "it_did_not")).status_code == 302
    assert client.post(at(asked), said(asked, "answer", answer="The second.")).status_code == 302
    assert (fresh(cut).gate, fresh(asked).gate) == (GateState.ANSWERED, GateState.ANSWERED)


# Several


def together(*outputs: Output, **decided: str) -> dict[str, Any]:
    sent: dict[str, Any] = {"id": keys(*outputs)}
    for place, output in enumerate(outputs):
        sent[f"digest_{output.pk}"] = output.digest
        sent[f"decision_{output.pk}"] = decided.get(f"d{place}", "leave")
    return sent


def test_several_are_decided_on_one_sheet_with_one_reason(client: Client, mara: User, jonas: User) -> None:
    outputs = [expiring(owner, 60, f"echo {n}") for n, owner in enumerate((mara, jonas, jonas, jonas))]
    html = client.get(f"{INBOX}together/?" + "&".join(f"ids={output.pk}" for output in outputs)).text
    for text in ("Decide 4 actions", "for you", "for Jonas", "Reason for all that you reject"):
        assert text in words(html)
    sent = together(*outputs, d0="approve", d1="reject", d2="reject") | {"reason": "Not now."}
    sent[f"reason_{outputs[2].pk}"] = "Never."
    response = client.post(f"{INBOX}together/", sent)
    assert response["Location"] == f"{INBOX}?done={'%2C'.join(str(output.pk) for output in outputs[:3])}"
    assert [fresh(output).gate for output in outputs] == ["approved", "rejected", "rejected", "pending"]
    assert [fresh(output).note for output in outputs] == ["", "Not now.", "Never.", ""]
    assert "3 actions are decided." in client.get(response["Location"]).text


def test_of_several_some_are_edited(client: Client, mara: User, jonas: User) -> None:
    """The form of an edit opens beside what was marked and typed; nothing is decided by opening it."""
    one, two = expiring(jonas, 60, "make one"), expiring(jonas, 60, "make two")
    sent = together(one, two, d0="reject") | {"reason": "Not now.", "edit": str(two.pk)}
    html = client.post(f"{INBOX}together/", sent).text
    assert [fresh(output).gate for output in (one, two)] == ["pending", "pending"]
    for shown in (f'name="{two.pk}-text-0"', "make two</textarea>", "Not now.</textarea>", f'name="edited_{two.pk}"'):
        assert shown in html
    for key, word in ((one.pk, "reject"), (two.pk, "approve")):
        assert re.search(rf'name="decision_{key}" value="{word}"[^>]* checked', html)
    typed = {f"edited_{two.pk}": "1", f"{two.pk}-text-0": "", f"{two.pk}-number-1": ""}
    response = client.post(f"{INBOX}together/", together(two, d0="approve") | typed)
    assert response.status_code == 409
    assert "Check the marked fields" in response.text
    html = client.post(f"{INBOX}together/", together(two, d0="approve") | typed | {"as_asked": str(two.pk)}).text
    assert f'name="edited_{two.pk}"' not in html
    typed[f"{two.pk}-text-0"] = "make tests"
    response = client.post(f"{INBOX}together/", together(one, two, d0="reject", d1="approve") | typed)
    assert response.status_code == 302
    assert fresh(two).content["input"]["command"] == "make tests"
    assert (fresh(one).gate, fresh(two).gate) == (GateState.REJECTED, GateState.APPROVED)


def test_an_edit_that_changes_the_facts_is_shown_before_it_is_approved(
    client: Client, mara: User, jonas: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = expiring(jonas, 60, "make two")
    typed = {f"edited_{output.pk}": "1", f"{output.pk}-text-0": "make tests", f"{output.pk}-number-1": "30"}
    response = client.post(f"{INBOX}together/", together(output, d0="approve") | typed)
    assert response.status_code == 409
    assert "What this input would do:" in response.text
    assert "at most 30 seconds" in words(response.text)
    assert fresh(output).gate == GateState.PENDING
    seen = re.search(rf'name="seen_{output.pk}" value="(\w+)"', response.text)
    assert seen
    sent = together(output, d0="approve") | typed | {f"seen_{output.pk}": seen[1]}
    assert client.post(f"{INBOX}together/", sent | {f"{output.pk}-number-1": "31"}).status_code == 409
    assert client.post(f"{INBOX}together/", sent).status_code == 302
    assert fresh(output).content["input"] == {"command": "make tests", "timeout_seconds": 30}


def test_of_several_risks_none_is_approved_and_no_more_than_can_be_read(
    client: Client, mara: User, jonas: User
) -> None:
    high, write = expiring(jonas, 60), expiring(jonas, 60, risk="write")
    response = client.post(f"{INBOX}together/", together(high, write, d0="approve", d1="approve"))
    assert response.status_code == 400
    assert "different risks" in response.text
    html = client.get(f"{INBOX}together/?ids={high.pk},{write.pk}&risk=write").text
    assert html.count('value="approve" data-says="approve" checked') == 1
    many = [expiring(jonas, 60) for _ in range(TOGETHER_MOST + 1)]
    assert client.post(f"{INBOX}together/", together(*many)).status_code == 400
    html = client.get(f"{INBOX}together/?ids={','.join(map(str, keys(*many)))}").text
    assert html.count('data-says="approve"') == TOGETHER_MOST
    assert "1 more is waiting: decide these first." in words(html)
    assert client.get(f"{INBOX}together/")["Location"] == INBOX


def test_of_several_those_of_others_are_neither_shown_nor_decided(client: Client, mara: User, jonas: User) -> None:
    theirs, own = expiring(mara, 60, "echo secret"), expiring(jonas, 60)
    client.force_login(jonas)
    html = client.get(f"{INBOX}together/?ids={theirs.pk},{own.pk}").text
    assert "secret" not in html
    response = client.post(f"{INBOX}together/", together(theirs, own, d0="approve", d1="approve"))
    assert response.status_code == 409
    assert "secret" not in response.text
    for none in (theirs.pk, 999_999):
        text = client.post(f"{INBOX}together/", {"id": none, f"decision_{none}": "approve"}).text
        assert f"Approval {none}: This approval does not exist, or you may not see it." in words(text)
    assert (fresh(theirs).gate, fresh(own).gate) == (GateState.PENDING, GateState.APPROVED)
