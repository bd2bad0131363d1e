"""What open pages receive: HTML of one conversation, a user's list, approvals."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.engine.ledger import Step
from conversations.accounts import presence
from conversations.approvals.decisions import decide
from conversations.approvals.expiry import expire_due
from conversations.database import disk
from conversations.erasure.conversations import erase
from conversations.erasure.steps import redact
from conversations.models import Conversation, Draft
from conversations.prompts.killswitch import turn_off, turn_on
from conversations.prompts.listing import archive, rename, unarchive
from conversations.push.consumers import MOST, TOO_MUCH
from tests.conversations.listening import Listener, aside, cookie, holds, opened
from tests.conversations.support import Story, asking, says

pytestmark = pytest.mark.django_db(transaction=True)


async def html_with(socket: Listener, *wanted: str) -> str:
    """Return the first frame that contains all of these."""
    html = await socket.text()
    while not all(text in html for text in wanted):
        html = await socket.text()
    return html


def seq_of(conversation: Conversation) -> int:
    """Return the last step of the conversation."""
    return Conversation.objects.get(pk=conversation.pk).seq


async def test_a_page_shows_what_happens(ann: User) -> None:
    """Text while it streams, and the whole text once it is recorded."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    await aside(story.asks_model)
    async with opened(f"/ws/conversations/{story.conversation.pk}/?after=2", session) as (socket, _):
        draft = {"conversation": story.conversation, "prompt": story.prompt, "path": "1", "attempt": 1, "fence": 1}
        await aside(Draft.objects.create, **draft, text="The first\n\n", size=11)
        await aside(story.append, Step("system", "note", {"text": "wakes every watch"}, "1"))
        await html_with(socket, "The first")
        await aside(Draft.objects.all().delete)
        await aside(story.answers, says("The first\n\nThe second."))
        await html_with(socket, "The second.")


async def test_a_page_that_comes_back_gets_what_it_lacks(ann: User) -> None:
    """From the step that it is at; and everything if it asks for that."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    await aside(story.asks_model)
    await aside(story.answers, says("While you were away."))
    async with opened(f"/ws/conversations/{story.conversation.pk}/?after=2", session) as (socket, _):
        await html_with(socket, "While you were away.")
        await socket.says(json.dumps({"refresh": 0}))
        await html_with(socket, "While you were away.", "Look around.")


async def test_the_list_moves_in_every_window(ann: User, bob: User) -> None:
    """A turn started in one window appears in the list of another, but not in other users' lists."""
    mine, other = await aside(cookie, ann), await aside(cookie, bob)
    async with opened("/ws/me/", mine) as (window, _), opened("/ws/me/", other) as (stranger, _):
        assert "Look around." not in await stranger.text()
        await window.text()
        await aside(Story, ann)
        await html_with(window, "Look around.")
        assert await stranger.nothing()


async def test_what_is_done_with_a_conversation_shows_in_every_window(ann: User) -> None:
    """No step records that it was renamed, archived or erased; the list and its page are updated all the same."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    await aside(story.ends)
    talk = story.conversation
    address = f"/ws/conversations/{talk.pk}/?after=1"
    async with opened("/ws/me/", session) as (window, _), opened(address, session) as (page, _):
        await window.text()
        await html_with(page, 'id="name"')
        await aside(rename, talk, "Harbour books")
        await html_with(window, "Harbour books")
        await html_with(page, 'id="name"', "Harbour books</h1>")
        await aside(archive, talk)
        assert "Harbour books" not in await html_with(window, "Archived (1)")
        await html_with(page, "Unarchive")
        await aside(unarchive, talk)
        await html_with(window, "Harbour books")
        await aside(erase, talk, ann)
        await html_with(window, "Your conversations will appear here.")


async def test_what_one_window_shows_at_its_end_is_read_in_all(ann: User) -> None:
    """Up to the step that it is at. Messages of a hidden page, a program or nonsense mark nothing."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    await aside(story.ends)
    address = f"/ws/conversations/{story.conversation.pk}/"
    async with opened("/ws/me/", session) as (window, _), opened(f"{address}?after=3", session) as (page, _):
        await window.says('{"looking": true}')
        await holds(presence.was_ever_present, ann.pk)
        await aside(rename, story.conversation, "Something else")
        await html_with(window, 'aria-label="unread"')
        async with opened(f"{address}?format=json", session) as (program, _):
            for _ in range(MOST + 1):  # all but the last are heard, for which it is closed
                await program.says('{"looking": true, "seen": 3}')
            assert await program.closed() == TOO_MUCH
            for said in ('{"looking": false, "seen": 3}', '{"looking": true, "seen": true}', '{"seen": 3}'):
                await page.says(said)
            await page.says('{"looking": true, "seen": 2}')
            await holds(Conversation.objects.filter(seen_seq=2).exists)
        await page.says('{"looking": true, "seen": 3}')
        html = await window.text()
        while 'aria-label="unread"' in html:
            html = await window.text()
        assert await aside(Conversation.objects.filter(seen_seq=3).exists)


async def test_staff_is_told_of_each_gate_that_it_is_shown(ann: User, bob: User, kim: User) -> None:
    """Opened and decided gates, and how many wait; a user who decides only their own gets no others."""
    await aside(User.objects.filter(pk__in=[bob.pk, kim.pk]).update, is_staff=True)
    decides, looks = await aside(cookie, kim), await aside(cookie, bob)
    async with opened("/ws/approvals/", decides) as (socket, _), opened("/ws/approvals/", looks) as (other, _):
        for each in (socket, other):
            for _ in range(2):  # at once, and with the first look
                assert json.loads(await each.text()) == {
                    "type": "approval.changed", "id": None, "state": "", "waiting": 0,
                }  # fmt: skip
        story, output = await aside(asking, ann)
        said = {"type": "approval.changed", "id": output.pk}
        assert json.loads(await socket.text()) == said | {"state": "pending", "waiting": 1}
        decision = {"decision": "reject", "digest": output.digest, "via": "admin"}
        await aside(story.append, Step(f"user:{kim.pk}", "action_result", decision, output.gate_path))
        assert json.loads(await socket.text()) == said | {"state": "rejected", "waiting": 0}
        assert await other.nothing()


async def counted(socket: Listener, number: int) -> None:
    """Wait for a frame with this number of waiting approvals, and for those that repeat it."""
    await html_with(socket, f'id="approvals" data-v="{number}"')
    while not await socket.nothing():
        assert f'id="approvals" data-v="{number}"' in await socket.text()


async def test_how_many_approvals_wait_moves_on_every_page(ann: User, bob: User, kim: User) -> None:
    """Of people who decide for others, whoever's turn begins to wait, is decided, is erased, or nobody decided in time.

    Nobody else's list moves: not that of staff who decide only their own.
    """
    await aside(User.objects.filter(pk__in=[bob.pk, kim.pk]).update, is_staff=True)
    decides, looks = await aside(cookie, kim), await aside(cookie, bob)
    async with opened("/ws/me/", decides) as (page, _), opened("/ws/me/", looks) as (other, _):
        await counted(page, 0)
        await counted(other, 0)
        _, output = await aside(asking, ann)
        await counted(page, 1)
        erased, _ = await aside(asking, ann)
        await counted(page, 2)
        await aside(decide, output.pk, kim, "reject", digest=output.digest, via="admin")
        await counted(page, 1)
        await aside(erase, erased.conversation, ann)
        await counted(page, 0)
        await aside(asking, ann, expires_at="2020-01-01T00:00:00+00:00")
        await counted(page, 1)
        await aside(expire_due)
        await counted(page, 0)
        assert await other.nothing()


async def test_a_page_in_view_says_that_somebody_looks(ann: User) -> None:
    """In that case no e-mail is sent; a hidden page reports nothing of the kind."""
    session = await aside(cookie, ann)
    async with opened("/ws/me/", session) as (socket, _):
        await socket.says('{"looking": false}')
        await socket.text()
        assert not await aside(presence.was_ever_present, ann.pk)
        await socket.says('{"looking": true}')
        await holds(presence.was_ever_present, ann.pk)


async def test_a_page_that_is_open_shows_what_was_redacted(ann: User) -> None:
    """Also of a turn that ended long ago, though no step records it."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    await aside(story.asks_model)
    await aside(story.answers, says("The password is swordfish."))
    await aside(story.ends)
    async with opened(f"/ws/conversations/{story.conversation.pk}/?after=1", session) as (socket, _):
        await html_with(socket, "swordfish")
        await aside(redact, story.conversation, [5], ann, "A password.")
        assert "swordfish" not in await html_with(socket, "[redacted]")


async def test_a_page_that_was_away_shows_what_was_redacted_meanwhile(ann: User) -> None:
    """The page comes back with the last step, and gets the turn all the same."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    await aside(story.asks_model)
    await aside(story.answers, says("The password is swordfish."))
    await aside(story.ends)
    last = await aside(seq_of, story.conversation)
    await aside(redact, story.conversation, [5], ann, "A password.")
    async with opened(f"/ws/conversations/{story.conversation.pk}/?after={last}", session) as (socket, _):
        assert "swordfish" not in await html_with(socket, "[redacted]")


async def test_every_page_tells_of_the_kill_switch_and_of_its_end(ann: User, bob: User) -> None:
    """For users with and without turns, though nothing happens in their conversations."""
    await aside(Story, ann)
    mine, other = await aside(cookie, ann), await aside(cookie, bob)
    async with opened("/ws/me/", mine) as (window, _), opened("/ws/me/", other) as (stranger, _):
        for page in (window, stranger):
            assert "All work is stopped" not in await html_with(page, 'id="notices"')
        await aside(turn_on, None, "A leak.")
        for page in (window, stranger):
            await html_with(page, "All work is stopped", "A leak.")
        await aside(turn_off, None)
        for page in (window, stranger):
            html = await page.text()
            while "All work is stopped" in html:
                html = await page.text()
            assert 'id="notices"' in html


async def test_every_page_tells_of_a_full_disk_and_of_its_end(ann: User, settings: Any, tmp_path: Path) -> None:
    """No commit reports it; a user with an open page sees the notice appear and disappear."""
    settings.AGENTSITE_DATA = tmp_path
    session = await aside(cookie, ann)
    async with opened("/ws/me/", session) as (window, _):
        assert "disk is full" not in await html_with(window, 'id="notices"')
        assert disk.report_if_full(OSError(errno.ENOSPC, "No space left on device"))
        await html_with(window, "disk is full")
        disk.report_space()
        html = await window.text()
        while "disk is full" in html:
            html = await window.text()
        assert 'id="notices"' in html
