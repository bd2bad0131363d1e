"""The sidebar, and managing a conversation: rename, archive, delete, repeat; and the marks in the list."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.test import Client
from django.utils import timezone

from agents.engine.execution.gates import ANOTHER
from conversations.accounts.presence import record_presence
from conversations.models import Conversation, Erasure, File, Output, Prompt, State
from conversations.pages.sidebar import SidebarRow, Waits, sidebar
from conversations.prompts.listing import archive, mark_seen, rename, unarchive
from conversations.prompts.start import cancel_prompt, continue_prompt, start_prompt
from tests.conversations.live_page import Element, parsed
from tests.conversations.recorded import beaten_to_it, taken
from tests.conversations.support import Story, asking, person, says

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def owner(client: Client) -> User:
    """A signed-in user whose pages report what was seen."""
    user = person("anna", first_name="Anna")
    client.force_login(user)
    record_presence(user.pk)
    return user


def answered(owner: User, said: str = "Look around.", state: str = "completed") -> Conversation:
    """A turn that has ended."""
    story = Story(owner, said)
    story.ends(state, "text" if state == "completed" else "model_error")
    return fresh(story.conversation)


def fresh(conversation: Conversation) -> Conversation:
    return Conversation.objects.get(pk=conversation.pk)


def row(owner: User, conversation: Conversation) -> SidebarRow:
    return next(row for group in sidebar(owner).groups for row in group.rows if row.conversation == conversation)


def at(conversation: Conversation, what: str) -> str:
    return f"/c/{conversation.pk}/{what}/"


# Renaming


def test_a_conversation_is_renamed_on_its_page(client: Client, owner: User) -> None:
    """With a plain form. It is not a message, so the conversation keeps its place in the list."""
    talk = answered(owner)
    page = client.get(f"/c/{talk.pk}/").text
    assert f'action="{at(talk, "rename")}"' in page
    assert client.post(at(talk, "rename"), {"title": "  Harbour \n books "})["Location"] == f"/c/{talk.pk}/"
    assert (fresh(talk).title, fresh(talk).updated_at) == ("Harbour books", talk.updated_at)
    assert ">Harbour books</h1>" in client.get(f"/c/{talk.pk}/").text


@pytest.mark.parametrize(("title", "why"), [(" \n ", "Enter a title."), ("x" * 201, "at most 200 characters")])
def test_a_title_that_cannot_be_taken_is_kept_in_the_form(client: Client, owner: User, title: str, why: str) -> None:
    talk = answered(owner)
    for headers in ({}, HTMX):
        refused = client.post(at(talk, "rename"), {"title": title}, headers=headers)
        assert refused.status_code == 400
        assert why in refused.text
        assert 'class="menu" open' in refused.text
        assert f'value="{title}"' in refused.text
    assert fresh(talk).title == "Look around."


def test_the_answer_to_an_open_page_is_what_changed(client: Client, owner: User) -> None:
    """The bar, the menu and the list."""
    talk = answered(owner)
    found = parsed(client.post(at(talk, "rename"), {"title": "Books"}, headers=HTMX).text)
    for name in ("name", "list"):
        part = found.find(name)
        assert part
        assert "Books" in part.text()


# Archiving


def test_what_is_archived_is_elsewhere_until_it_is_put_back(client: Client, owner: User) -> None:
    """Plain forms lead to the list, which offers once to undo it."""
    talk = answered(owner)
    shown = client.post(at(talk, "archive"), follow=True)
    assert shown.redirect_chain == [("/", 302)]
    assert f'action="{at(talk, "put-back")}"' in shown.text
    assert "Archived (1)" in shown.text
    assert f'id="c-{talk.pk}"' not in shown.text
    assert "Undo" not in client.get("/").text
    assert f'id="c-{talk.pk}"' in client.get("/?archived=1").text
    assert client.post(at(talk, "put-back"))["Location"] == f"/c/{talk.pk}/"
    assert f'id="c-{talk.pk}"' in client.get("/").text
    assert "No archived conversations." in client.get("/?archived=1").text


def test_the_next_message_puts_it_back(owner: User) -> None:
    talk = answered(owner)
    archive(talk)
    start_prompt(talk, owner, "One more thing.")
    assert fresh(talk).archived_at is None


def test_what_waits_is_in_the_list_though_it_is_archived(owner: User) -> None:
    """A person is needed, so it is never out of sight."""
    story, _ = asking(owner)
    archive(story.conversation)
    assert row(owner, story.conversation).waits.number == 1


def test_archiving_twice_changes_nothing(owner: User) -> None:
    talk = answered(owner)
    archive(talk)
    when = fresh(talk).archived_at
    archive(fresh(talk))
    assert fresh(talk).archived_at == when
    unarchive(fresh(talk))
    unarchive(fresh(talk))
    assert fresh(talk).archived_at is None


# Deleting


def test_deleting_asks_first_and_leaves_a_trace(client: Client, owner: User) -> None:
    talk = answered(owner)
    page = client.get(at(talk, "delete")).text
    assert "Who deleted it, when and why." in page
    assert Conversation.objects.exists()
    shown = client.post(at(talk, "delete"), {"reason": " It was a trial. "}, follow=True)
    assert shown.redirect_chain == [("/", 302)]
    assert "Deleted: Look around." in shown.text
    assert "Undo" not in shown.text
    assert not Conversation.objects.exists()
    trace = Erasure.objects.get()
    assert (trace.conversation_id, trace.erased_by, trace.reason) == (talk.pk, "anna", "It was a trial.")


def test_a_reason_is_kept_as_valid_text(client: Client, owner: User) -> None:
    assert client.post(at(answered(owner), "delete"), {"reason": "a\x00b"}).status_code == 302
    assert Erasure.objects.get().reason == "a\ufffdb"


def test_a_conversation_whose_turn_runs_is_not_deleted(client: Client, owner: User) -> None:
    talk = fresh(Story(owner).conversation)
    taken(talk.prompts.get())
    refused = client.post(at(talk, "delete"), {"reason": "Because."})
    assert refused.status_code == 409
    assert "stop it first" in refused.text
    assert "Because.</textarea>" in refused.text
    assert Conversation.objects.exists()


def test_the_second_of_two_that_delete_finds_nothing(
    client: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = answered(owner)
    monkeypatch.setattr("conversations.pages.manage.erase", beaten_to_it)
    assert client.post(at(talk, "delete")).status_code == 404
    assert Erasure.objects.count() == 1


def test_what_other_pages_have_to_say_is_left_to_them(client: Client, owner: User) -> None:
    """The list shows only messages about archiving and deleting, even if it is the first page loaded."""
    client.post("/account/sign-out-everywhere/")
    first = client.get("/").text
    assert "Undo" not in first
    assert "Deleted:" not in first
    assert "Deleted: Look around." in client.post(at(answered(owner), "delete"), follow=True).text
    account = client.get("/account/").text
    assert "You were not signed in anywhere else." in account
    assert "Look around." not in account


# What is marked


def test_what_ended_out_of_view_is_unread_until_it_is_seen(client: Client, owner: User) -> None:
    talk = answered(owner)
    assert row(owner, talk).unread
    assert 'aria-label="unread"' in client.get("/").text
    mark_seen(talk.pk, talk.seq - 1)
    assert row(owner, talk).unread
    mark_seen(talk.pk, talk.seq)
    assert not row(owner, talk).unread
    assert 'aria-label="unread"' not in client.get("/").text


def test_what_was_seen_never_moves_back_nor_ahead(owner: User) -> None:
    talk = answered(owner)
    for seq, seen in ((2, 2), (1, 2), (talk.seq + 1, 2), (talk.seq, talk.seq), (2, talk.seq)):
        mark_seen(talk.pk, seq)
        assert fresh(talk).seen_seq == seen


def test_a_failure_is_marked_until_it_is_dealt_with(client: Client, owner: User) -> None:
    """Seeing it is not enough: going on, asking again, another message or archiving is."""
    talk = answered(owner, state="failed")
    mark_seen(talk.pk, talk.seq)
    assert row(owner, talk).failed
    assert not row(owner, talk).unread
    for shown in (client.get("/").text, client.get(talk.get_absolute_url()).text):
        assert '<span class="vh">failed</span>' in shown
    client.post(f"/c/{talk.pk}/archive/")
    assert '<span class="vh">failed</span>' not in client.get("/?archived=1").text
    client.post(f"/c/{talk.pk}/put-back/")
    assert row(owner, talk).failed
    Story(owner, conversation=talk).ends()
    assert not row(owner, talk).failed


def test_what_waits_has_its_count_and_what_works_its_sign(client: Client, owner: User) -> None:
    """They come before any other mark; a working conversation is not unread."""
    story, _ = asking(owner)
    assert row(owner, story.conversation).unread
    working = Story(owner).conversation
    assert not row(owner, working).unread
    shown = parsed(client.get("/").text)
    for talk, mark in ((story.conversation, "1 waiting"), (working, "")):
        link = shown.find(f"c-{talk.pk}")
        assert link
        assert link.elements[1].attributes["class"] == "mark"
        assert link.elements[1].text() == mark


def test_who_speaks_has_read_what_was_said(owner: User) -> None:
    """Without scripts no page reports what was seen."""
    talk = answered(owner)
    story = Story(owner, "And then?", talk)
    assert fresh(talk).seen_seq == talk.seq + 1
    cancel_prompt(story.prompt.pk, owner)
    assert not row(owner, talk).unread  # who stopped it knows that


def test_nothing_is_unread_for_whom_no_page_says_what_was_seen(ann: User) -> None:
    """A browser without JavaScript, or a program: the marks would never go away."""
    talk = answered(ann)
    assert not row(ann, talk).unread
    record_presence(ann.pk)
    assert row(ann, talk).unread


def test_a_turn_that_is_not_shown_is_no_news(owner: User) -> None:
    talk = answered(owner)
    mark_seen(talk.pk, talk.seq)
    hidden = Story(owner, "Quietly.", talk)
    hidden.ends()
    Prompt.objects.filter(pk=hidden.prompt.pk).update(visible=False)
    Conversation.objects.filter(pk=talk.pk).update(seen_seq=talk.seq)
    assert not row(owner, talk).unread


def test_a_get_changes_nothing_of_what_was_seen(client: Client, owner: User) -> None:
    talk = answered(owner)
    client.get(f"/c/{talk.pk}/")
    assert fresh(talk).seen_seq == talk.seen_seq


# The list


def test_the_second_line_says_what_waits(client: Client, owner: User) -> None:
    """On a phone, where there is room for it."""
    story, _ = asking(owner)
    when = next(e for e in elements(client, story.conversation) if "when" in e.attributes["class"])
    assert re.fullmatch(r"just now · 1 action waiting", when.text())


def elements(client: Client, talk: Conversation) -> list[Element]:
    link = parsed(client.get("/").text).find(f"c-{talk.pk}")
    assert link
    return link.elements


def test_the_list_costs_the_same_for_one_and_for_many(owner: User, django_assert_num_queries: Any) -> None:
    for number in range(5):
        talk = answered(owner, f"Number {number}")
        Conversation.objects.filter(pk=talk.pk).update(updated_at=timezone.now() - timedelta(days=number))
    asking(owner)
    User.objects.get(pk=owner.pk).get_all_permissions()
    with django_assert_num_queries(14):
        sidebar(User.objects.get(pk=owner.pk))


# Trying again


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_turn_is_tried_again_with_the_same_message(client: Client, owner: User, state: str) -> None:
    story = Story(owner, "Count the ships.")
    Prompt.objects.filter(pk=story.prompt.pk).update(tier="high")
    old = story.ends(state, "model_error", "The model did not answer.")
    assert client.post(f"/prompts/{old.pk}/again/").status_code == 302
    first, second = story.conversation.prompts.order_by("number")
    assert first == old
    assert (second.input, second.tier, second.asked_by, second.continues) == ("Count the ships.", "high", owner, None)
    assert fresh(story.conversation).active_prompt == second
    again = client.post(f"/prompts/{old.pk}/again/", headers=HTMX)
    assert again.status_code == 409
    assert "is running or waiting" in again.text


def test_what_was_answered_since_or_had_no_message_is_not_asked_again(client: Client, owner: User) -> None:
    done = answered(owner).prompts.get()
    Story(owner, "And then?", done.conversation).ends()
    story = Story(owner)
    Prompt.objects.filter(pk=story.prompt.pk).update(fence=1)
    failed = story.ends("failed", "model_error")
    went_on = story.prompt = continue_prompt(failed.pk, owner)
    story.ends("failed", "model_error")
    for prompt in (done, went_on):
        refused = client.post(f"/prompts/{prompt.pk}/again/", headers=HTMX)
        assert refused.status_code == 409
    assert story.conversation.prompts.count() == 2


def test_its_files_go_with_it(client: Client, owner: User) -> None:
    """The new turn refers to the same content, and the same place in the workspace."""
    story = Story(owner, "Read it.")
    file = File(
        conversation=story.conversation, prompt=story.prompt, path="a.txt", name="a.txt", media_type="text/plain",
        size=1, sha256="0" * 64,
    )  # fmt: skip
    file.content.save("a", ContentFile(b"a"))
    old = story.ends("failed", "model_error")
    client.post(f"/prompts/{old.pk}/again/")
    new = story.conversation.prompts.get(number=2)
    copied = new.files.get()
    assert copied != file
    assert (copied.content.name, copied.path, copied.name) == (file.content.name, "a.txt", "a.txt")
    assert old.files.get() == file
    assert [each["id"] for each in new.steps.get().content["payload"]["files"]] == [copied.pk]


@pytest.mark.parametrize(
    ("finished", "primary", "other"),
    [(True, "Go on from here", "Ask again"), (False, "Ask again", "Go on from here")],
)
def test_the_first_button_is_what_loses_least(
    client: Client, owner: User, finished: bool, primary: str, other: str
) -> None:
    """Continue if something was finished, otherwise repeat."""
    story = Story(owner)
    story.asks_model()
    call = story.call("files.read", path="a")
    story.answers(says("I look."), *([call] if finished else []))
    if finished:
        story.begins(call)
        story.comes_to(call, "a")
    story.ends("failed", "model_error", "The model did not answer.")
    Prompt.objects.filter(pk=story.prompt.pk).update(fence=1)
    page = client.get(f"/c/{story.conversation.pk}/").text
    assert re.findall(r'<button class="btn( primary| )">(?:<svg.*?</svg>)?(Go on from here|Ask again)', page) == [
        (" primary", primary), (" ", other)
    ]  # fmt: skip


def test_a_turn_that_was_stopped_before_it_began_can_only_be_asked_again(client: Client, owner: User) -> None:
    story = Story(owner)
    story.ends("cancelled", "cancelled")
    assert story.prompt.state == State.CANCELLED
    page = client.get(f"/c/{story.conversation.pk}/").text
    assert "Ask again" in page
    assert "Go on from here" not in page


def test_the_title_follows_the_first_message_until_a_person_names_it(owner: User) -> None:
    talk = answered(owner, "Hi, please count the ships.")
    assert talk.title == "Count the ships."
    rename(talk, "Ships")
    Story(owner, "Another thing.", talk)
    assert fresh(talk).title == "Ships"


# What waits for somebody else


def test_what_waits_for_somebody_else_says_so(client: Client, owner: User) -> None:
    """With four eyes its owner may only reject: no amber, no number in the title, no browser notification."""
    story, _ = asking(owner, who=ANOTHER)
    shown = sidebar(owner)
    assert [(group.title, len(group.rows)) for group in shown.groups] == [("Waiting for someone else", 1)]
    assert (shown.waiting, shown.groups[0].rows[0].waits) == (0, Waits(1, 0, others=True))
    html = client.get(f"/c/{story.conversation.pk}/").text
    page = parsed(html)
    link, state = page.find(f"c-{story.conversation.pk}"), page.find("state")
    assert link
    assert state
    assert "data-asks" not in link.attributes
    assert link.elements[1].elements[0].attributes["class"] == "count"
    assert (state.attributes["data-waiting"], state.text()) == ("0", "Waiting for someone else")
    assert "Waiting for you" not in page.text()
    assert "waiting for you" not in html
    assert "<title>Run it now. · Agentsite</title>" in html


def test_of_several_actions_those_count_that_wait_for_the_reader(client: Client, owner: User) -> None:
    """One gate of the owner's and one with four eyes in the same answer: the conversation waits for its owner, once."""
    story = Story(owner)
    story.asks_model()
    calls = [story.call("shell.run", command=command) for command in ("ls", "make pay")]
    story.answers(*calls)
    own = story.gate(calls[0])
    story.gate(calls[1], who=ANOTHER)
    story.pauses()
    shown = sidebar(owner)
    assert shown.groups[0].title == "Waiting for you"
    assert (shown.waiting, shown.groups[0].rows[0].waits) == (1, Waits(1, asked(own)))
    assert "<title>(1) " in client.get(f"/c/{story.conversation.pk}/").text


def asked(output: Output) -> int:
    """When its gate was opened, as in the list."""
    assert output.asked_at
    return int(output.asked_at.timestamp() * 1000)


def test_what_is_asked_last_is_news_whatever_output_it_stands_in(client: Client, owner: User) -> None:
    """A call that was proposed first may ask last: notifications go by when it was asked."""
    story = Story(owner)
    story.asks_model()
    calls = [story.call("shell.run", command=command) for command in ("ls", "make pay")]
    story.answers(*calls)
    earlier = story.gate(calls[1])
    later = story.gate(calls[0])
    story.pauses()
    assert later.pk < earlier.pk
    assert sidebar(owner).groups[0].rows[0].waits == Waits(2, asked(later))
    link = parsed(client.get(f"/c/{story.conversation.pk}/").text).find(f"c-{story.conversation.pk}")
    assert link
    assert link.attributes["data-asks"] == str(asked(later))


def test_who_may_decide_nothing_waits_for_somebody_else(owner: User) -> None:
    asking(owner)
    owner.groups.clear()
    shown = sidebar(User.objects.get(pk=owner.pk))
    assert (shown.groups[0].title, shown.waiting) == ("Waiting for someone else", 0)
