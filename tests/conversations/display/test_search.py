"""Searching one's conversations: titles, what was said, and what the agent answered."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.engine.ledger import Step
from conversations.display.search import search
from conversations.models import Conversation, Prompt
from conversations.pages.sidebar import sidebar
from conversations.prompts.listing import archive, rename
from tests.conversations.live_page import parsed
from tests.conversations.support import Story, says

pytestmark = pytest.mark.django_db


def talk(owner: User, title: str, said: str = "Go.", answer: str = "Done.") -> Conversation:
    story = Story(owner, said)
    story.asks_model()
    story.answers(says(answer))
    story.ends()
    rename(story.conversation, title)
    return story.conversation


def found(owner: User, text: str) -> dict[str, str]:
    """The titles, in order, with the place that was found."""
    mine = Conversation.objects.visible_to(owner)
    titles = dict(mine.values_list("pk", "title"))
    return {titles[pk]: quote for pk, quote in search(mine, text, 10).items()}


def test_titles_messages_and_answers_are_searched(ann: User) -> None:
    """The newest first; where the title does not match, the place that does."""
    talk(ann, "Harbour books")
    talk(ann, "B", said="Where do the HARBOUR books stand?")
    talk(ann, "C", answer="In the cupboard, next to\nthe **harbour** books.")
    talk(ann, "D")
    assert found(ann, "harbour books") == {
        "C": "… to the **harbour** books.",
        "B": "… do the HARBOUR books stand?",
        "Harbour books": "",
    }
    assert list(found(ann, "cupboard")) == ["C"]
    assert found(ann, "  ") == {}


def test_all_words_stand_in_one_text(ann: User) -> None:
    talk(ann, "A", said="invoices", answer="duplicates")
    talk(ann, "B", answer="Duplicates among the invoices.")
    assert list(found(ann, "invoices duplicates")) == ["B"]


@pytest.mark.parametrize("text", ["100%", "_", "a\\b", '"quoted"', "\u00fcber", "\u00dcBER", "a'b", "[x]"])
def test_no_character_means_anything_but_itself(ann: User, text: str) -> None:
    """Neither to LIKE nor in the JSON of an output; in another case where letters have one."""
    for place in ("title", "said", "answer"):
        talk(ann, **({"title": place} | {place: f"x {text} y"}))
    talk(ann, "no", said="100 a/b quoted aber", answer="ab\nnuber x")
    assert sorted(found(ann, text.swapcase())) == sorted([f"x {text} y", "said", "answer"])


@pytest.mark.parametrize("text", ["created_at", "role_hint", "u00fc", "nuber", "2026", "true"])
def test_how_an_output_is_stored_is_not_searched(ann: User, text: str) -> None:
    """Names, times and escapes of its JSON are nothing that was said."""
    talk(ann, "A", answer="x\nuber \u00fc")
    assert found(ann, text) == {}


def test_what_tools_returned_and_hidden_turns_are_not_searched(ann: User) -> None:
    story = Story(ann, "Read it.")
    story.asks_model()
    call = story.call("files.read", path="secret.txt")
    story.answers(call)
    story.comes_to(call, {"content": "the password"})
    story.ends()
    hidden = talk(ann, "Quiet", said="a hidden word", answer="a hidden answer")
    Prompt.objects.filter(conversation=hidden).update(visible=False)
    for text in ("password", "secret", "hidden"):
        assert found(ann, text) == {}


def test_nobody_finds_what_is_anothers(client: Client, ann: User, bob: User) -> None:
    talk(ann, "Harbour", said="harbour", answer="harbour")
    client.force_login(bob)
    for address in ("/?q=harbour", "/list/?q=harbour"):
        assert "No results." in client.get(address).text
        assert "/c/" not in client.get(address).text.replace('"/c/"', "")


def test_what_was_put_away_is_found_and_marked(client: Client, ann: User) -> None:
    archive(talk(ann, "Harbour books"))
    client.force_login(ann)
    listed = parsed(client.get("/list/?q=harbour").text).find("list")
    assert listed
    assert "Harbour books" in listed.text()
    assert "archived" in listed.text()
    assert "data-query" in listed.attributes  # no push takes its place


def test_a_hostile_place_is_shown_as_text(client: Client, ann: User) -> None:
    """T-51: nothing in a title or a quote is HTML, or turns the line round."""
    talk(ann, "T\u202e<script>alert(1)</script>", answer="<img src=x onerror=alert(1)> \u202e harbour \x07")
    client.force_login(ann)
    html = client.get("/list/?q=harbour").text
    assert "harbour" in html
    for forbidden in ("<script", "<img", "\u202e", "\x07"):
        assert forbidden not in html


def test_as_many_as_fit_into_the_list(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it says that there are more; the newest are there."""
    monkeypatch.setattr("conversations.pages.sidebar.LIST_MOST", 2)
    for number in range(4):
        pk = talk(ann, f"Harbour {number}").pk
        Conversation.objects.filter(pk=pk).update(updated_at=timezone.now() - timedelta(days=number))
    shown = sidebar(ann, "harbour")
    assert [str(row.conversation) for group in shown.groups for row in group.rows] == ["Harbour 0", "Harbour 1"]
    assert shown.more
    assert not sidebar(ann, "harbour 3").more


@pytest.mark.postgres
def test_it_looks_into_one_conversation_after_the_other(ann: User) -> None:
    """So that it can end at the number asked for. A hashed subplan has read the messages of all people first."""
    for number in range(3):
        talk(ann, f"{number}", answer="harbour")
    with CaptureQueriesContext(connection) as queries:
        assert list(found(ann, "harbour")) == ["2", "1", "0"]
    (sql,) = (each["sql"] for each in queries if "LIMIT 10" in each["sql"])
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "SubPlan" in plan
    assert "hashed" not in plan


def test_long_texts_are_quoted_around_the_word(ann: User) -> None:
    talk(ann, "A", answer="before " * 5000 + "harbour " + "after " * 5000)
    quote = found(ann, "harbour")["A"]
    assert quote.startswith("… before harbour after")
    assert quote.endswith(" …")
    assert len(quote) < 150


def test_what_the_site_said_of_a_turn_is_found(ann: User) -> None:
    story = Story(ann, "Go.")
    story.append(Step("system", "text", {"text": "Stopped at the harbour.", "role_hint": "system"}))
    assert len(found(ann, "harbour")) == 1
