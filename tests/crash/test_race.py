"""Races: many people decide one call at the same moment, on two web processes."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore

from conversations.models import Output, Prompt, Step
from conversations.verification.stored import verify
from tests.agentsite.processes import connect, free_port, started
from tests.crash.acting import both
from tests.crash.processes import wait_for
from tests.crash.site import Site
from tests.crash.workers import Whole

pytestmark = pytest.mark.crash
PEOPLE = 20


@dataclass
class Visitor:
    """Somebody with the approval open in a browser: what it showed, and what they will send."""

    port: int
    cookies: dict[str, str]
    form: dict[str, str]

    def sends(self, path: str) -> int:
        """Post the form; the answer's status."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Cookie": cookies, "Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", path, urlencode(self.form), headers)
        status = connection.getresponse().status
        connection.close()
        return status


@pytest.fixture
def ports(site: Site) -> Iterator[list[int]]:
    """Two web processes on one database."""
    with ExitStack() as stack:
        found = [free_port(), free_port()]
        for port in found:
            environment, log = site.environment(PORT=str(port)), site.folder / f"web{port}.log"
            stack.enter_context(started("-m", "agentsite.web", environment=environment, log=log))
            connect(port).close()
        yield found


def signed_in(number: int) -> str:
    """The session of somebody who may decide for others."""
    person = User.objects.create_superuser(f"person{number}", password="x")
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    return str(session.session_key)


def looks(port: int, path: str, session: str, decision: str) -> Visitor:
    """Open the page, and choose."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"Cookie": f"sessionid={session}"})
    answer = connection.getresponse()
    page = answer.read().decode()
    csrf = re.search(r"csrftoken=(\w+)", answer.headers["Set-Cookie"])
    digest = re.search(r'name="digest" value="(\w+)"', page)
    assert csrf
    assert digest
    connection.close()
    token = csrf.group(1)
    form = {"digest": digest.group(1), "decision": decision, "reason": "No.", "csrfmiddlewaretoken": token}
    return Visitor(port, {"sessionid": session, "csrftoken": token}, form)


@both
def test_twenty_decisions_from_two_web_processes_are_one(site: Site, ports: list[int]) -> None:
    """One wins, the others get 409; the tool ran once, or never where the winner said no (I5, T-07, T-08)."""
    worker = Whole(site)
    try:
        prompt = site.say("count")
        gate = wait_for(lambda: site.pending(prompt), "the gate", site)[0]
        path = f"/admin/conversations/approval/{gate.pk}/change/"
        sessions = [signed_in(number) for number in range(PEOPLE)]
        decisions = ["approve", "reject"] * (PEOPLE // 2)
        visitors = [
            looks(ports[number // 2 % 2], path, session, decision)
            for number, (session, decision) in enumerate(zip(sessions, decisions, strict=True))
        ]
        ready = threading.Barrier(PEOPLE)

        def send(visitor: Visitor) -> int:
            ready.wait(timeout=60)
            return visitor.sends(path)

        with ThreadPoolExecutor(PEOPLE) as threads:
            statuses = list(threads.map(send, visitors))
        assert Counter(statuses) == {302: 1, 409: PEOPLE - 1}
        wait_for(lambda: Prompt.objects.get(pk=prompt.pk).ended, "the end of the turn", site)
    finally:
        worker.kill()

    won = decisions[statuses.index(302)]
    decided = Step.objects.filter(prompt=prompt, path=gate.gate_path, type="action_result")
    assert [step.content["decision"] for step in decided] == [won]
    assert sum(site.effects().values()) == (1 if won == "approve" else 0)
    assert Output.objects.get(pk=gate.pk).result == ("success" if won == "approve" else "error")
    assert verify(prompt.conversation_id).problems == []
