"""Fifty people decide one call at the same moment, in the chat, in the admin and over the API, on two web processes."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from itertools import cycle

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore

from conversations.accounts.keys import make_key
from conversations.models import Output, Prompt, Step
from conversations.verification.stored import verify
from tests.crash.acting import both
from tests.crash.processes import wait_for
from tests.crash.site import Site
from tests.crash.test_race import Visitor, looks, ports
from tests.crash.workers import Whole

__all__ = ["ports"]

pytestmark = pytest.mark.crash
PEOPLE = 50
PATIENT = {"AGENTSITE_LEASE_SECONDS": "30"}
"""No lease is to lapse here: fifty clients on two cores may keep a worker from renewing one of two seconds."""

Sends = Callable[[], int]


def session_of(person: User) -> str:
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    return str(session.session_key)


def by_form(port: int, page: str, to: str, person: User, decision: str) -> Sends:
    """Somebody with the page open; 302 is done."""
    visitor: Visitor = looks(port, page, session_of(person), decision)
    return lambda: visitor.sends(to)


def by_key(port: int, gate: Output, person: User, decision: str) -> Sends:
    """A program of somebody's; 200 is done."""
    key = make_key(person, "a program", ["read", "decide"])[1]

    def send() -> int:
        connection = HTTPConnection("127.0.0.1", port, timeout=120)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        connection.request(
            "POST", f"/api/approvals/{gate.pk}/{decision}/", json.dumps({"digest": gate.digest}), headers
        )
        status = connection.getresponse().status
        connection.close()
        return status

    return send


@pytest.mark.parametrize("decisions", [("approve",), ("reject",), ("approve", "reject")])
@both
def test_fifty_decisions_over_three_surfaces_are_one(site: Site, ports: list[int], decisions: tuple[str, ...]) -> None:
    """One wins and 49 get 409; the winner again gets the first result; one step, at most one effect.

    T-07, T-08, CP16, I5.
    """
    worker = Whole(site, **PATIENT)
    try:
        prompt = site.say("count")
        gate = wait_for(lambda: site.pending(prompt), "the gate", site)[0]
        admin, chat = f"/admin/conversations/approval/{gate.pk}/change/", f"/approvals/{gate.pk}/decide/"
        staff = {"is_staff": True, "is_superuser": True}
        others = User.objects.bulk_create([User(username=f"p{n}", **staff) for n in range(PEOPLE - 1)])
        people = [site.person(), *others]
        words = [word for _, word in zip(people, cycle(decisions), strict=False)]
        talk = prompt.conversation.get_absolute_url()
        sends = [by_form(ports[0], talk, chat, people[0], words[0])]
        sends += [by_form(ports[n // 4 % 2], admin, admin, people[n], words[n]) for n in range(1, PEOPLE, 2)]
        sends += [by_key(ports[n // 4 % 2], gate, people[n], words[n]) for n in range(2, PEOPLE, 2)]
        who = [0, *range(1, PEOPLE, 2), *range(2, PEOPLE, 2)]
        ready = threading.Barrier(PEOPLE)

        def send(one: Sends) -> int:
            ready.wait(timeout=120)
            return one()

        with ThreadPoolExecutor(PEOPLE) as threads:
            statuses = list(threads.map(send, sends))
        assert Counter(status // 100 for status in statuses if status != 409).total() == 1, Counter(statuses)
        (won,) = (n for n, status in enumerate(statuses) if status in (200, 302))
        assert sends[won]() == statuses[won], "the same person again gets the first result"
        wait_for(lambda: Prompt.objects.get(pk=prompt.pk).ended, "the end of the turn", site)
    finally:
        worker.kill()

    word = words[who[won]]
    (step,) = Step.objects.filter(prompt=prompt, path=gate.gate_path, type="action_result")
    assert (step.actor, step.content["decision"]) == (f"user:{people[who[won]].pk}", word)
    assert step.content["via"] == ("page" if won == 0 else "admin" if statuses[won] == 302 else "api")
    assert sum(site.effects().values()) == (1 if word == "approve" else 0)
    assert verify(prompt.conversation_id).problems == []
