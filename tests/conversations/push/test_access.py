"""Access to sockets: who may listen, and for how long."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client

from conversations.models import ApiKey, Conversation
from conversations.push import access, consumers, hub
from tests.conversations.listening import (
    Transcript,
    aside,
    cookie,
    following,
    key_for,
    opened,
    streamed,
)
from tests.conversations.support import PASSWORD, Story

pytestmark = pytest.mark.django_db(transaction=True)

FOREIGN = {
    "absent": None,
    "null": "null",
    "empty": "",
    "another site": "http://evil.example",
    "subdomain": "http://evil.testserver",
    "parent": "http://server",
    "suffix": "http://testserver.evil.example",
    "prefix": "http://eviltestserver",
    "user": "http://testserver@evil.example",
    "port": "http://testserver:8443",
    "scheme": "https://testserver",
    "path": "http://testserver/",
    "case of two": "http://testserver, http://evil.example",
    "no address": "http://[",
}
ADDRESSES = ("/ws/conversations/{}/", "/ws/conversations/{}/?format=json", "/ws/me/", "/ws/approvals/")


async def test_pages_of_other_sites_are_refused(ann: User) -> None:
    """Refused before the socket is accepted, whoever is signed in (T-48, CWE-1385)."""
    session = await aside(cookie, ann)
    story = await aside(Story, ann)
    for address in ADDRESSES:
        for name, origin in FOREIGN.items():
            async with opened(address.format(story.conversation.pk), session, origin) as (_, first):
                assert first == {"type": "websocket.close"}, (address, name)


async def test_a_host_that_is_not_the_site_s_is_refused(ann: User) -> None:
    """An origin equal to the Host header proves nothing if that host name was bound by somebody else (T-48)."""
    session = await aside(cookie, ann)
    async with opened("/ws/me/", session, "http://evil.example", host="evil.example") as (_, first):
        assert first == {"type": "websocket.close"}


async def test_trusted_origins_are_the_site_s_own(ann: User, settings: Any) -> None:
    """As Django trusts them for forms: behind a proxy that changes the host (T-48)."""
    settings.CSRF_TRUSTED_ORIGINS = ["https://agents.example", "https://*.wild.example"]
    session = await aside(cookie, ann)
    accepted = {
        "https://agents.example": True,
        "http://agents.example": False,
        "https://team.wild.example": True,
        "https://wild.example.evil.example": False,
        "https://evilwild.example": False,
        "http://testserver": True,
    }
    for origin, good in accepted.items():
        async with opened("/ws/me/", session, origin) as (_, first):
            assert (first["type"] == "websocket.accept") is good, origin


async def test_behind_a_proxy_with_https_the_origin_is_https(ann: User, settings: Any) -> None:
    """As the proxy's header says, but only if the settings name that header (T-48)."""
    session = await aside(cookie, ann)
    https = [(b"x-forwarded-proto", b"https")]
    for named, origin, accepted in (
        (("HTTP_X_FORWARDED_PROTO", "https"), "https://testserver", True),
        (("HTTP_X_FORWARDED_PROTO", "https"), "http://testserver", False),
        (None, "https://testserver", False),
    ):
        settings.SECURE_PROXY_SSL_HEADER = named
        async with opened("/ws/me/", session, origin, headers=https) as (_, first):
            assert (first["type"] == "websocket.accept") is accepted


async def test_nobody_is_told_to_sign_in(ann: User) -> None:
    story = await aside(Story, ann)
    for address in ADDRESSES:
        for session in ("", "nobodys"):
            async with opened(address.format(story.conversation.pk), session) as (socket, _):
                assert await socket.closed() == 4401


async def test_another_s_conversation_is_as_if_it_were_not_there(ann: User, bob: User) -> None:
    """Neither the socket nor its code tells the two cases apart."""
    story, session = await aside(Story, ann), await aside(cookie, bob)
    for address in ADDRESSES[:2]:
        for pk in (story.conversation.pk, 999, 10**25):
            async with opened(address.format(pk), session) as (socket, _):
                assert await socket.closed() == 4404


async def test_a_page_of_somebody_else_is_told_so(ann: User, bob: User) -> None:
    """Who signed in last, in the same browser, is not whose page it is."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    for address in (f"/ws/conversations/{story.conversation.pk}/", "/ws/me/"):
        async with opened(f"{address}?person={bob.pk}&after=0", session) as (socket, _):
            assert await socket.closed() == 4409
        async with opened(f"{address}?person={ann.pk}&after=0", session) as (_, first):
            assert first["type"] == "websocket.accept"


async def test_approvals_are_for_people_who_decide(ann: User, bob: User) -> None:
    await aside(bob.groups.clear)
    async with opened("/ws/approvals/", await aside(cookie, bob)) as (socket, _):
        assert await socket.closed() == 4403
    async with opened("/ws/approvals/", await aside(cookie, ann)) as (socket, _):
        assert json.loads(await socket.text())["waiting"] == 0


async def test_a_key_needs_no_origin(ann: User, bob: User) -> None:
    """Programs send no Origin. With a bad key the socket is refused before it is accepted, whatever the cookie."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    address = f"/ws/conversations/{story.conversation.pk}/?format=json"
    async with opened(address, origin=None, key=await aside(key_for, ann)) as (socket, first):
        assert first["type"] == "websocket.accept"
        assert (await socket.event())["type"] == "prompt.created"
    async with opened(address, origin=None, key=await aside(key_for, bob)) as (socket, _):
        assert await socket.closed() == 4404
    async with opened(address, session, key="agk_wrong") as (_, first):
        assert first == {"type": "websocket.close"}


async def test_there_is_nothing_elsewhere(ann: User) -> None:
    session = await aside(cookie, ann)
    for address in ("/ws/", "/ws/conversations/x/", "/ws/conversations/1/more/", "/", "/ws/meme/"):
        async with opened(address, session) as (_, first):
            assert first == {"type": "websocket.close"}


def logs_out(user: User, session: str) -> None:
    client = Client()
    client.cookies["sessionid"] = session
    client.post("/logout/")


def ends_the_session(user: User, session: str) -> None:
    Session.objects.filter(pk=session).delete()


def is_deactivated(user: User, session: str) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def has_a_new_password(user: User, session: str) -> None:
    user.set_password(PASSWORD + "!")
    user.save()


def loses_the_conversation(user: User, session: str) -> None:
    other = User.objects.create_user("other")
    Conversation.objects.filter(owner=user).update(owner=other)


ENDS: list[Callable[[User, str], None]] = [
    logs_out, ends_the_session, is_deactivated, has_a_new_password, loses_the_conversation,
]  # fmt: skip


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Access is checked again all the time."""
    monkeypatch.setattr(hub, "CHECK_SECONDS", 0.05)


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.usefixtures("often")
async def test_a_socket_ends_with_what_let_it_in(ann: User, ends: Callable[[User, str], None]) -> None:
    """The socket is closed and gets nothing more; a second one is refused (T-43)."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    async with following(story.conversation.pk, session) as socket:
        await socket.event()
        await aside(ends, ann, session)
        code = await socket.closed()
        assert code in (4401, 4404)
        await aside(story.ends)
        assert await socket.nothing()
    async with opened(f"/ws/conversations/{story.conversation.pk}/", session) as (again, _):
        assert await again.closed() == code


async def test_a_logout_closes_this_process_s_sockets_at_once(ann: User) -> None:
    """By the signal, not by a check (T-43). Another session of the same user stays open."""
    story = await aside(Story, ann)
    session, other = await aside(cookie, ann), await aside(cookie, ann)
    async with (
        following(story.conversation.pk, session) as socket,
        following(story.conversation.pk, other) as stays,
    ):
        await aside(logs_out, ann, session)
        assert await socket.closed() == 4401
        await aside(story.ends)
        transcript = Transcript()
        await stays.listen(transcript, lambda: transcript.state(story.prompt.pk) == "completed")


@pytest.mark.usefixtures("often")
async def test_a_revoked_key_ends_its_socket_and_its_stream(ann: User) -> None:
    """Within seconds (T-43)."""
    story, key = await aside(Story, ann), await aside(key_for, ann)
    address = f"conversations/{story.conversation.pk}/"
    async with (
        opened(f"/ws/{address}?format=json", origin=None, key=key) as (socket, _),
        streamed(f"/api/{address}events/", key) as stream,
    ):
        events = stream.events()
        assert (await anext(events))["type"] == "prompt.created"
        await aside(ApiKey.objects.all().delete)
        assert await socket.closed() == 4401
        assert [event["type"] async for event in events] in (["prompt.started"], [])


@pytest.mark.usefixtures("often")
async def test_who_may_decide_nothing_any_more_is_told_of_no_approvals(kim: User) -> None:
    async with opened("/ws/approvals/", await aside(cookie, kim)) as (socket, _):
        assert json.loads(await socket.text())["waiting"] == 0
        await aside(kim.groups.clear)
        await aside(kim.user_permissions.clear)
        assert await socket.closed() == 4403


NONSENSE = (
    "", "{", "[]", "null", "7", '"x"', "[" * 150, '{"refresh": "1"}', '{"refresh": -1}', '{"refresh": true}',
    '{"looking": 1}', '{"decide": {"id": 1, "decision": "approve"}}', '{"type": "topic.message"}',
)  # fmt: skip


async def test_what_makes_no_sense_is_passed_over(ann: User) -> None:
    """A socket decides nothing, and no message breaks it (T-43, T-58)."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    async with following(story.conversation.pk, session) as socket:
        for said in NONSENSE:
            await socket.says(said)
        transcript = Transcript()
        await aside(story.ends)
        await socket.listen(transcript, lambda: transcript.state(story.prompt.pk) == "completed")


async def test_who_says_too_much_is_closed(ann: User) -> None:
    """Messages that are too long, or too many."""
    story, session = await aside(Story, ann), await aside(cookie, ann)
    for messages in (["x" * 10_000], ['{"looking": false}'] * 100):
        async with following(story.conversation.pk, session) as socket:
            for said in messages:
                await socket.says(said)
            assert await socket.closed() == 4429


def test_a_socket_is_closed_with_codes_that_daphne_sends() -> None:
    """It raises an error for those that the protocol keeps for servers, and the socket would stay open and silent."""
    codes = [access.SIGN_IN, access.FORBIDDEN, access.NOT_FOUND, access.ANOTHER_PERSON]
    codes += [consumers.FAILED, consumers.TRY_AGAIN, consumers.TOO_MUCH]
    assert all(4000 <= code <= 4999 for code in codes)
