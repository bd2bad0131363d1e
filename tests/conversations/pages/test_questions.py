"""Questions of policies in the chat, on the sheet and in the admin: their forms, and what is shown of the answers."""

from __future__ import annotations

import html as htmllib
import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents.engine import Action, Context
from conversations.approvals.decisions import decide
from conversations.models import GateState, Output, Prompt
from conversations.pages.chat.live import catch_up
from tests.budget import share
from tests.conversations.pages.test_approvals import HIDDEN, HTMX, at, fresh, said, words
from tests.conversations.questions import TRIP, Trip, asked, outcome, waiting
from tests.conversations.recorded import Site, pending
from tests.conversations.support import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client: Client) -> User:
    user = person("anna", first_name="Anna")
    client.force_login(user)
    return user


@pytest.fixture
def chief(db: None) -> User:
    return person("chief", first_name="Mara", is_superuser=True, is_staff=True)


def page(prompt: Prompt) -> str:
    return str(prompt.conversation.get_absolute_url())


def admin(gate: Output) -> str:
    return f"/admin/conversations/approval/{gate.pk}/change/"


def card_in(html: str) -> str:
    return html[html.index('<article class="ask') : html.index("</article>")]


TYPED = {"line-0": "Lisbon", "number-1": "3", "choice-2": '"aisle"', "choice-3": "true", "lines-4": "", "line-5": "",
         "line-6": ""}  # fmt: skip
"""What a browser sends of the form of a Trip."""


def test_a_question_is_answered_in_words(client: Client, owner: User, site: Site) -> None:
    prompt, gate = asked(site, owner, "Two lists are named \u201cautumn\u201d.\n\nWhich one?")
    card = card_in(client.get(page(prompt)).text)
    assert "Two lists are named \u201cautumn\u201d.\n\nWhich one?" in card
    assert "Reject" not in card
    assert "Expires " in words(card)
    refused = client.post(at("decide", gate), said(gate, "answer", answer="  "))
    assert refused.status_code == 400
    assert 'aria-invalid="true"' in refused.text
    long = client.post(at("decide", gate), said(gate, "answer", answer="x" * 20_001))
    assert (long.status_code, "x" * 20_001 in long.text) == (400, True)
    client.post(at("decide", gate), said(gate, "answer", answer="The\r\nsecond."))
    assert outcome(site, prompt) == "The\nsecond."
    shown = words(client.get(page(prompt)).text)
    assert "Two lists are named \u201cautumn\u201d. \u2026 Answered by you in the chat" in shown
    assert "\u201cThe \u2026\u201d" in shown, "the answer stands below, however long the question"


@pytest.mark.parametrize(
    ("choices", "kind"),
    [
        (["Yes", "No"], "buttons"),
        (["a", "b", "c", "d", "e"], "radios"),
        (["Yes, and send it to everybody who asked for it", "No"], "radios"),
        ([f"City {n}" for n in range(200)], "select"),
        ([f"City {n}" for n in range(20)] + ["City\u202e 3"], "radios"),
        ([f"City {n}" for n in range(20)] + ["City 3 "], "radios"),
        ([f"City {n}" for n in range(20)] + ["long " * 20], "radios"),
        (["a\nb", "c"], "radios"),
        (['"', "'", "<b>&amp;", "\\"], "buttons"),
    ],
)
def test_choices_are_shown_so_that_they_can_be_told_apart(
    client: Client, owner: User, site: Site, choices: list[str], kind: str
) -> None:
    """A few short ones as buttons, many in a list that opens; what has marks or is long in neither. Each comes back."""
    prompt, gate = asked(site, owner, "Which?", choices=choices)
    card = card_in(client.get(page(prompt)).text)
    values = re.findall(r'(?:<button class="btn"|type="radio"|<option)(?: name="answer")? value="([^"]+)"', card)
    assert [json.loads(htmllib.unescape(value)) for value in values] == choices
    assert ("<select" in card, 'type="radio"' in card) == (kind == "select", kind == "radios")
    assert (">Answer</button>" in card) is (kind != "buttons")
    for nothing in ({}, {"answer": ""}, {"answer": "7"}, {"answer": "no JSON"}):
        assert client.post(at("decide", gate), said(gate, "answer", **nothing)).status_code == 400
    client.post(at("decide", gate), said(gate, "answer", answer=json.dumps(choices[-1])))
    assert outcome(site, prompt) == choices[-1]


def test_a_form_has_a_field_for_each_value_and_keeps_what_was_typed(client: Client, owner: User, site: Site) -> None:
    prompt, gate = asked(site, owner, Trip)
    card = card_in(client.get(page(prompt)).text)
    for label in ("City", "Nights", "Seat", "With breakfast?", "Stops", "As on the ticket."):
        assert label in card
    assert "autofocus" not in card, "a card that arrives takes no focus"
    assert "Only the first paragraph" not in card
    wrong = TYPED | {"number-1": "three", "choice-2": "", "line-5": "2026-12-24"}
    for htmx in ({}, HTMX):
        refused = client.post(at("decide", gate), said(gate, "answer", **wrong), headers=htmx)
        assert refused.status_code == 400
        for text in ("Check the marked fields", "Enter a whole number", "Choose one.", 'value="2026-12-24"', "three"):
            assert text in refused.text
        assert refused.text.count("autofocus") == 1
    outside = client.post(at("decide", gate), said(gate, "answer", **TYPED | {"number-1": "31"}))
    assert "Enter a number from 1 to 30." in words(outside.text)
    client.post(at("decide", gate), said(gate, "answer", **TYPED))
    assert outcome(site, prompt)["city"] == "Lisbon"
    shown = words(client.get(page(prompt)).text)
    for text in ("Where should it go?", "Nights 3", "With breakfast? Yes", "Seat aisle", "City: Lisbon, Nights: 3"):
        assert text in shown


def test_what_todays_form_refuses_comes_back_filled_in(client: Client, owner: User, chief: User, site: Site) -> None:
    prompt, gate = asked(site, owner, Trip)
    client.post(at("decide", gate), said(gate, "answer", **TYPED | {"line-0": "Nowhere"}))
    site.works()
    (again,) = pending(prompt)
    client.force_login(owner)
    pages = [client.get(page(prompt)).text, catch_up(prompt.conversation_id, 0)[0]]
    client.force_login(chief)
    pages.append(client.get(admin(gate)).text)
    for html in pages:
        for text in ("was not accepted", "There is no such city.", 'value="Nowhere"', 'aria-invalid="true"'):
            assert text in html
    assert client.post(admin(gate), said(again, "answer", **TYPED)).status_code == 302
    assert outcome(site, prompt)["city"] == "Lisbon"


def test_the_other_is_told_what_was_answered_and_by_whom(client: Client, owner: User, chief: User, site: Site) -> None:
    """In the chat and in the admin; what they typed is still there to read."""
    _, gate = asked(site, owner, "Which?")
    decide(gate.pk, chief, "answer", digest=gate.digest, via="admin", answer="The first.")
    late = client.post(at("decide", gate), said(gate, "answer", answer="The second."), headers=HTMX)
    assert late.status_code == 409
    for text in ("Not decided. Answered by Mara in the admin", "\u201cThe first.\u201d", "not used", "The second."):
        assert text in words(late.text)
    client.force_login(person("other", is_superuser=True, is_staff=True))
    late = client.post(admin(gate), said(gate, "answer", answer="The third."))
    assert late.status_code == 409
    for text in ("this is already answered", "Answered by Mara", "The first.", "not used", "The third."):
        assert text in words(late.text)


def test_an_answer_to_what_is_asked_no_more_is_kept_to_read(client: Client, owner: User, site: Site) -> None:
    """The card asks again since: its form is new, and what was typed into the old one stands beside it."""
    prompt, gate = asked(site, owner, Trip)
    decide(gate.pk, owner, "answer", digest=gate.digest, via="api", answer=TRIP | {"city": "Nowhere"})
    site.works()
    stale = client.post(at("decide", gate), said(gate, "answer", **TYPED | {"line-0": "Faro", "number-1": "x"}))
    assert stale.status_code == 409
    card = card_in(stale.text)
    for text in ("not what you were shown", 'value="Nowhere"', "Your input was not used", "Faro"):
        assert text in card
    assert pending(prompt)


def test_a_policy_asks_for_approval_in_its_own_words(client: Client, owner: User, chief: User, site: Site) -> None:
    async def program(ctx: Context) -> Any:
        return [await ctx.approve("Book it?", details="Lisbon,\n3 nights"), await ctx.approve("x\n" * 60)]

    prompt, gate = waiting(site, owner, program)
    card = card_in(client.get(page(prompt)).text)
    for text in ("Book it?</h2>", "Lisbon,\n3 nights", ">Approve</button>", "Reject\u2026"):
        assert text in card
    assert "Edit</a>" not in card
    client.force_login(chief)
    html = client.get(admin(gate)).text
    assert "Lisbon,\n3 nights" in html
    assert client.post(admin(gate), said(gate)).status_code == 302
    site.works()
    client.force_login(owner)
    html = client.get(page(prompt)).text
    assert "Book it? Lisbon, \u2026 Approved by Mara in the admin" in words(html)
    assert "&quot;decision&quot;" not in html, "its result is the decision, which stands above it"
    assert "x\n" * 59 in card_in(html)
    (second,) = pending(prompt)
    client.post(at("decide", second), said(second, "reject", reason="Too long."))
    assert outcome(site, prompt) == [True, False]


async def _three(ctx: Context) -> Any:
    said: Any = await ctx.gather(
        ctx.ask("In words?", key="a"), ctx.ask("Which?", choices=["b", "c"], key="b"), ctx.ask(Trip, key="c")
    )
    return [*said[:2], said[2].city]


def test_questions_are_answered_together_on_the_sheet(client: Client, owner: User, site: Site) -> None:
    prompt, _ = waiting(site, owner, _three)
    one, two, three = pending(prompt)
    bar = client.get(page(prompt)).text
    assert "Answer all\u2026" in bar
    assert "Approve all" not in bar
    address = reverse("sheet", args=[prompt.conversation_id])
    html = client.get(address).text
    assert html.count('value="leave" checked') == 3
    assert html.count('value="answer"') == 3
    assert f'name="{three.pk}-line-0"' in html
    sent: dict[str, Any] = {"id": [one.pk, two.pk, three.pk]}
    for gate in (one, two, three):
        sent |= {f"digest_{gate.pk}": gate.digest, f"decision_{gate.pk}": "answer"}
    sent |= {f"{one.pk}-answer": "Words.", f"{two.pk}-answer": '"c"'}
    typed = {f"{three.pk}-{name}": text for name, text in TYPED.items()}
    refused = client.post(address, sent | typed | {f"{three.pk}-number-1": "x"})
    assert refused.status_code == 409
    for text in ("Not decided.", "Enter a whole number", f'name="{three.pk}-line-0"', 'value="Lisbon"', "Words."):
        assert text in refused.text
    assert [fresh(gate).gate for gate in (one, two, three)] == ["answered", "answered", "pending"]
    assert client.post(address, sent | typed).status_code == 302
    assert outcome(site, prompt) == ["Words.", "c", "Lisbon"]


def test_what_was_typed_on_the_sheet_is_not_lost_as_later(client: Client, owner: User, site: Site) -> None:
    """Without a script nothing marks it. What only stands there untouched is left."""
    prompt, _ = waiting(site, owner, _three)
    one, _, three = pending(prompt)
    address = reverse("sheet", args=[prompt.conversation_id])
    empty = {f"{three.pk}-{name}": "" for name in TYPED}
    left = {"id": [one.pk, three.pk], f"decision_{one.pk}": "leave", f"{one.pk}-answer": "", **empty}
    assert client.post(address, left).status_code == 302
    for typed in ({f"{one.pk}-answer": "Words."}, {f"{three.pk}-line-0": "Words."}):
        refused = client.post(address, left | typed)
        assert refused.status_code == 409
        assert "marked for later" in words(refused.text)
        assert "Words." in refused.text
    assert len(pending(prompt)) == 3


def test_questions_are_answered_together_in_the_admin(client: Client, owner: User, chief: User, site: Site) -> None:
    prompt, _ = waiting(site, owner, _three)
    one, two, three = pending(prompt)
    client.force_login(chief)
    address = f"/admin/conversations/approval/together/?ids={one.pk},{two.pk},{three.pk}"
    assert f'name="{three.pk}-line-0"' in client.get(address).text
    decide(one.pk, owner, "answer", digest=one.digest, via="page", answer="Mine.")
    sent = {"id": [one.pk, two.pk], f"decision_{one.pk}": "answer", f"decision_{two.pk}": "answer",
            f"digest_{one.pk}": one.digest, f"digest_{two.pk}": two.digest,
            f"{one.pk}-answer": "Yours.", f"{two.pk}-answer": '"b"'}  # fmt: skip
    late = client.post(address, sent)
    assert late.status_code == 409
    for text in ("already answered", "Mine.", "not used", "Yours.", "Answered by you"):
        assert text in words(late.text)
    assert fresh(two).via == "admin"


@pytest.mark.parametrize("mark", share(list(HIDDEN), of=3))
@pytest.mark.parametrize("where", ["question", "choice", "answer", "title", "details", "schema"])
def test_nothing_about_a_question_hides(client: Client, owner: User, site: Site, mark: str, where: str) -> None:
    """In the chat, pushed, on the sheet and in the admin, before and after the answer."""
    text = f"safe{HIDDEN[mark]}; rm -rf x"
    hidden = HIDDEN[mark]

    async def program(ctx: Context) -> Any:
        if where in ("title", "details"):
            return await ctx.approve(text if where == "title" else "Go?", text if where == "details" else "")
        if where == "schema":
            properties = {"a": {"enum": [text, "b"], "title": text, "description": text, "default": text}}
            asked = {"ask": "question", "question": "?", "schema": {"type": "object", "properties": properties}}
            return (await ctx.call(Action("human", asked)))[-1].payload
        return await ctx.ask(
            text if where == "question" else "Which?", choices=[text, "b"] if where == "choice" else None
        )

    owner.is_staff = owner.is_superuser = True
    owner.save()
    prompt, gate = waiting(site, owner, program)

    def pages() -> list[str]:
        chat = client.get(page(prompt)).text
        return [
            chat[chat.index('id="turns"') :],
            client.get(at("card", gate), headers=HTMX).text,
            client.get(admin(gate)).text,
            catch_up(prompt.conversation_id, 0)[0],
        ]

    def check(html: str) -> None:
        html = re.sub(' value="[^"]*"', "", html)  # nobody reads it
        assert hidden[0] not in html or hidden[0] in " \n"
        assert " " * 1_000 not in html
        assert "\n" * 100 not in html

    for html in [*pages(), client.get(reverse("sheet", args=[prompt.conversation_id])).text]:
        check(html)
        if where not in ("answer", "schema"):
            assert "rm -rf x" in words(html)
    if where in ("title", "details"):
        decide(gate.pk, owner, "approve", digest=gate.digest, via="api")
    else:
        said = {"a": text} if where == "schema" else text if where in ("choice", "answer") else "b"
        decide(gate.pk, owner, "answer", digest=gate.digest, via="api", answer=said)
    for html in pages():
        check(html)
        assert ("rm -rf x" in words(html)) or where == "schema"


def test_words_that_are_not_what_they_look_like_are_named(client: Client, owner: User, site: Site) -> None:
    prompt, _ = asked(site, owner, "Pay to p\u0430ypal?", choices=["yes", "n\u043e"])
    shown = words(client.get(page(prompt)).text)
    assert shown.count("Not one script") == 2


@pytest.mark.parametrize("kind", ["chat", "sheet", "admin"])
def test_a_stranger_may_not_answer(client: Client, owner: User, site: Site, kind: str) -> None:
    """Neither see it. Who sees it without the permission is told who may."""
    prompt, gate = asked(site, owner, "Which?")
    sheet = reverse("sheet", args=[prompt.conversation_id])
    address = {"chat": at("decide", gate), "sheet": sheet, "admin": admin(gate)}[kind]
    sent = said(gate, "answer", answer="a") | {"id": str(gate.pk), f"decision_{gate.pk}": "answer"}
    for other in (person("bela"), person("staff", is_staff=True)):
        client.force_login(other)
        assert client.post(address, sent).status_code == (403 if kind == "admin" and not other.is_staff else 404)
    client.logout()
    assert client.post(address, sent)["Location"].startswith(("/login/", "/admin/login/"))
    owner.groups.clear()
    owner.is_staff = True
    owner.save()
    person("mara", "decide_approval", first_name="Mara", is_staff=True)
    client.force_login(owner)
    shown = client.get(page(prompt)).text
    assert "Mara can decide this under Approvals." in words(shown)
    assert 'name="answer"' not in card_in(shown)
    assert client.post(address, sent).status_code in (403, 409)
    assert fresh(gate).gate == GateState.PENDING


def test_where_somebody_else_must_answer_the_form_is_theirs(
    client: Client, owner: User, chief: User, site: Site
) -> None:
    prompt, gate = asked(site, owner, "May it go out?", choices=["yes", "no"], who="another")
    for html in (client.get(page(prompt)).text, client.get(reverse("sheet", args=[prompt.conversation_id])).text):
        assert "Someone else must decide this" in words(html)
        assert 'value="&quot;yes&quot;"' not in html
    refused = client.post(at("decide", gate), said(gate, "answer", answer='"yes"'))
    assert (refused.status_code, "Someone else must answer this" in words(refused.text)) == (400, True)
    client.force_login(chief)
    assert 'value="&quot;yes&quot;"' in client.get(admin(gate)).text
    assert client.post(admin(gate), said(gate, "answer", answer='"yes"')).status_code == 302
    assert outcome(site, prompt) == "yes"


def test_the_list_of_the_admin_shows_question_and_answer(client: Client, owner: User, chief: User, site: Site) -> None:
    _, gate = asked(site, owner, "Which one\u202e?")
    client.force_login(chief)
    shown = words(client.get("/admin/conversations/approval/").text)
    assert "A question Which one" in shown.replace("U+202E", "")
    assert "A question" in words(client.get("/admin/").text)
    decide(gate.pk, chief, "answer", digest=gate.digest, via="admin", answer="The second.")
    assert "The second." in words(client.get("/admin/conversations/approval/?state=answered").text)
