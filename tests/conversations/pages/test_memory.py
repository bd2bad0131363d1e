"""The page of memories: a person's own, to read, write, pin, forget and switch off; to others it does not exist."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from agents.models import Memory, MemoryStanding, SearchedWord
from agents.plugins.memory import keeping
from agents.plugins.memory.keeping import CannotKeep
from conversations.models import ConversationKind
from conversations.pages.account.memory import PAGE_ROWS
from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.engine.support import says

pytestmark = pytest.mark.django_db

TEA, BIKE = "I prefer green tea.", "My bicycle is red."
LIST = reverse("memory")


@pytest.fixture
def client(ann: User) -> Client:
    return client_of(ann)


def client_of(user: User) -> Client:
    signed_in = Client()
    signed_in.force_login(user)
    return signed_in


def read(response: Any) -> str:
    """The text of a page, without what is beside it."""
    return " ".join(strip_tags(response.content.decode().partition('<main class="main"')[2]).split())


def listed(client: Client, **query: Any) -> list[str]:
    return [row.memory.text for row in client.get(LIST, query).context["rows"]]


def keep(user: User, *texts: str, **more: Any) -> list[Memory]:
    return [keeping.save(user.pk, text, **more).memory for text in texts]


def texts(user: User) -> set[str]:
    return set(Memory.objects.filter(user=user).values_list("text", flat=True))


def test_the_account_leads_there_and_an_empty_page_says_how_to_begin(client: Client) -> None:
    assert f'href="{LIST}"' in client.get(reverse("account")).content.decode()
    page = read(client.get(LIST))
    assert "Nothing yet. Add something above, or tell the agent in a conversation" in page
    assert "stays in the record of its conversation" in page
    assert "Search" not in page


def test_what_is_added_is_listed_pinned_ones_first_then_the_newest(client: Client, ann: User) -> None:
    for text, pinned in ((TEA, "on"), (BIKE, ""), ("Third.", "")):
        assert client.post(LIST, {"text": f" {text}\r\n", **({"pinned": pinned} if pinned else {})}).status_code == 302
    assert listed(client) == [TEA, "Third.", BIKE]
    assert "Written by you just now" in read(client.get(LIST))
    client.post(LIST, {"text": TEA})
    assert "That was saved already." in read(client.get(LIST))
    assert len(texts(ann)) == 3


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("", "Write what is to be remembered."),
        (" \n ", "Write what is to be remembered."),
        ("x" * 2_001, "A memory has at most 2,000 characters, and this has 2,001."),
        ("a\x00b", "Null characters are not allowed."),
    ],
)
def test_an_error_stands_at_its_field_which_keeps_what_was_typed(
    client: Client, ann: User, typed: str, why: str
) -> None:
    (kept,) = keep(ann, TEA)
    for address in (LIST, reverse("change-memory", args=[kept.pk])):
        refused = client.post(address, {"text": typed, "pinned": "on"})
        assert refused.status_code == 400
        assert why in read(refused)
        assert refused.context["form"]["text"].value() == typed
        assert "checked" in str(refused.context["form"]["pinned"])
    assert texts(ann) == {TEA}


def test_two_thousand_characters_are_counted_with_a_line_end_once(client: Client, ann: User) -> None:
    client.post(LIST, {"text": "x\r\n" * 999 + "xy"})
    (text,) = texts(ann)
    assert len(text) == 2_000


def test_one_is_changed_and_found_by_its_new_words(client: Client, ann: User) -> None:
    tea, _ = keep(ann, TEA, BIKE)
    address = reverse("change-memory", args=[tea.pk])
    assert TEA in client.get(address).content.decode()
    assert client.post(address, {"text": "I prefer coffee.", "pinned": "on"}).status_code == 302
    tea.refresh_from_db()
    assert (tea.text, tea.pinned) == ("I prefer coffee.", True)
    assert [each.pk for each in keeping.find(ann.pk, "coffee")] == [tea.pk]
    assert keeping.find(ann.pk, "tea") == []
    same = client.post(address, {"text": BIKE})
    assert (same.status_code, "Another memory says exactly this." in read(same)) == (400, True)


def test_one_is_pinned_and_unpinned(client: Client, ann: User) -> None:
    tea, _ = keep(ann, TEA, BIKE)
    client.post(reverse("pin-memory", args=[tea.pk]))
    assert listed(client) == [TEA, BIKE]
    client.post(reverse("unpin-memory", args=[tea.pk]))
    assert listed(client) == [BIKE, TEA]


def test_a_pin_that_is_asked_for_is_kept_though_the_text_is_there(client: Client, ann: User) -> None:
    keep(ann, TEA)
    client.post(LIST, {"text": TEA, "pinned": "on"})
    assert "That was saved already. It is pinned now." in read(client.get(LIST))
    assert Memory.objects.get().pinned


def test_what_is_typed_for_one_that_was_forgotten_meanwhile_is_not_lost(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tea,) = keep(ann, TEA)
    typed = {"text": "I prefer coffee.", "pinned": "on"}

    def forgotten(*_args: object, **_more: object) -> None:
        """As `keeping.change` finds it after somebody else has forgotten it, once the page has read it."""
        keeping.forget(ann.pk, tea.pk)
        keeping.pin(ann.pk, tea.pk, True)

    with monkeypatch.context() as patched:
        patched.setattr(keeping, "change", forgotten)
        at_that_moment = client.post(reverse("change-memory", args=[tea.pk]), typed)
    for gone in (at_that_moment, client.post(reverse("change-memory", args=[tea.pk]), typed)):
        assert (gone.status_code, "is not there any more. Add this text as a new one" in read(gone)) == (404, True)
        assert gone.context["form"]["text"].value() == "I prefer coffee."
        assert "checked" in str(gone.context["form"]["pinned"])
    assert client.get(reverse("change-memory", args=[tea.pk])).status_code == 404
    assert client.post(reverse("pin-memory", args=[tea.pk])).status_code == 404


def test_what_is_saved_and_too_long_to_be_told_whole_is_said(client: Client, ann: User, settings: Any) -> None:
    settings.AGENTSITE_MEMORY_TOKENS = 20
    client.post(LIST, {"text": "long " * 20})
    assert "Saved. It is longer than there is room for: the agent is told how it begins." in read(client.get(LIST))


def test_of_who_was_deactivated_nothing_is_switched_on_or_off(ann: User) -> None:
    User.objects.filter(pk=ann.pk).update(is_active=False)
    with pytest.raises(CannotKeep):
        keeping.switch(ann.pk, on=False)
    assert not MemoryStanding.objects.exists()


def test_one_is_forgotten_after_a_question_with_all_its_words(client: Client, ann: User) -> None:
    tea, _ = keep(ann, TEA, BIKE)
    address = reverse("forget-memory", args=[tea.pk])
    question = read(client.get(address))
    assert TEA in question
    assert "What past answers were given stays in the record" in question
    assert "still have it among their messages" in question
    assert texts(ann) == {TEA, BIKE}
    client.post(address)
    assert texts(ann) == {BIKE}
    assert set(SearchedWord.objects.values_list("row", flat=True)) == set(Memory.objects.values_list("pk", flat=True))
    assert client.post(address).status_code == 404


def test_it_is_switched_off_and_on_and_keeps_what_is_there(client: Client, ann: User) -> None:
    keep(ann, TEA)
    client.post(reverse("switch-memory-off"))
    page = read(client.get(LIST))
    assert "Memory is off: your agent is told of nothing below" in page
    assert TEA in page
    client.post(reverse("switch-memory-off"))
    client.post(reverse("switch-memory-on"))
    assert "Memory is on." in read(client.get(LIST))


def test_where_the_site_has_none_the_page_says_so(client: Client, ann: User, settings: Any) -> None:
    settings.AGENTSITE_MEMORY_TOKENS = 0
    keep(ann, TEA)
    page = read(client.get(LIST))
    assert "switched off for this whole site" in page
    assert TEA in page


@pytest.mark.parametrize("words", ["TEA", "green pre", "  tea  "])
def test_all_words_of_a_search_must_occur(client: Client, ann: User, words: str) -> None:
    keep(ann, TEA, BIKE, "Teapots are green")
    assert TEA in listed(client, q=words)
    assert BIKE not in listed(client, q=words)
    assert "None of your 3 memories has all of these words." in read(client.get(LIST, {"q": "zebra"}))


def test_many_stand_on_pages_and_a_page_that_is_none_shows_the_nearest(client: Client, ann: User) -> None:
    keep(ann, *(f"Fact number {number} of many." for number in range(PAGE_ROWS + 1)))
    assert len(listed(client)) == PAGE_ROWS
    assert listed(client, page=2, q="fact many") == ["Fact number 0 of many."]
    assert listed(client, page=99) == listed(client, page=2)
    assert listed(client, page="x") == listed(client)
    assert "page=2&amp;q=fact%20many" in client.get(LIST, {"q": "fact many"}).content.decode()


def test_it_says_in_which_conversation_it_was_saved_while_that_can_be_opened(
    client: Client, ann: User, kim: User, site: Site
) -> None:
    mine, hidden, others = (site.ended(user, says("Hi.")) for user in (ann, ann, kim))
    hidden.conversation.kind = ConversationKind.HIDDEN
    hidden.conversation.save()
    for prompt in (mine, hidden, others):
        keep(ann, f"From {prompt.pk}", prompt=prompt.pk)
    keep(ann, "From a deleted one", prompt=10**12)
    html = client.get(LIST).content.decode().partition('<main class="main"')[2]
    assert f'href="{mine.conversation.get_absolute_url()}"' in html
    assert f'href="{hidden.conversation.get_absolute_url()}"' not in html
    assert f'href="{others.conversation.get_absolute_url()}"' not in html


def test_to_others_it_does_not_exist_to_administrators_neither(ann: User) -> None:
    (tea,) = keep(ann, TEA)
    chief = client_of(person("chief", is_superuser=True, is_staff=True))
    for name in ("change-memory", "forget-memory", "pin-memory", "unpin-memory"):
        address = reverse(name, args=[tea.pk])
        assert chief.post(address, {"text": "Mine."}).status_code == 404
        assert chief.get(address).status_code in (404, 405)
    assert listed(chief) == []
    assert listed(chief, q="tea") == []
    for address in (reverse("admin:index"), reverse("admin:auth_user_change", args=[ann.pk])):
        assert TEA not in chief.get(address).content.decode()
    assert texts(ann) == {TEA}


def test_what_it_says_is_shown_as_text_with_marks_for_what_cannot_be_seen(client: Client, ann: User) -> None:
    keep(ann, "<script>alert(1)</script> \u202eevil")
    page = client.get(LIST).content.decode()
    assert "<script>alert(1)" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize("most", [1, PAGE_ROWS])
def test_a_page_takes_as_many_queries_for_many(
    client: Client, ann: User, site: Site, django_assert_max_num_queries: Any, most: int
) -> None:
    prompt = site.ended(ann, says("Hi."))
    keep(ann, *map(str, range(most)), prompt=prompt.pk)
    with django_assert_max_num_queries(20):
        client.get(LIST)
