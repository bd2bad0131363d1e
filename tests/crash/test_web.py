"""Web processes that die during a request: it either took effect or did not, and it can be sent again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from http.client import HTTPConnection, HTTPException

import pytest

from conversations.accounts.keys import make_key
from conversations.models import GateState, Output, Prompt, Scope, Step
from conversations.prompts.start import cancel_prompt, start_conversation
from tests.crash.acting import MARKS, Start, asks, began, both, doing, ended, killed_at, payloads, served
from tests.crash.processes import wait_for
from tests.crash.site import Site
from tests.crash.workers import ROOT

pytestmark = MARKS


def sends(port: int, key: str, conversation: int, text: str) -> tuple[int, int]:
    """A program sends a message under a name of its own; the status, and the prompt that came of it."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Idempotency-Key": "k-1"}
    try:
        connection.request("POST", f"/api/conversations/{conversation}/prompts/", json.dumps({"input": text}), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())["id"]
    finally:
        connection.close()


@both
@pytest.mark.parametrize(("point", "stored"), [("before_start", 0), ("before_wake", 1)])
def test_a_message_whose_web_process_dies_is_sent_again_and_starts_one_turn(
    site: Site, start: Start, point: str, stored: int
) -> None:
    """CP01, CP02, T-21, T-27, T-32: what was committed runs without being sent again; sent again it is the same."""
    conversation, key = start_conversation(site.person()), make_key(site.person(), "a program", Scope.values)[1]
    with served(site, **killed_at(site, point)) as (process, port):
        with pytest.raises((HTTPException, OSError)):
            sends(port, key, conversation.pk, "do")
        assert process.wait() == -signal.SIGKILL
    assert Prompt.objects.count() == stored
    start()
    for prompt in Prompt.objects.all():
        assert ended(site, prompt).state == "completed"
    with served(site) as (_, port):
        first, second = (sends(port, key, conversation.pk, "do") for _ in range(2))
    assert first == second == (201, Prompt.objects.get().pk)
    assert ended(site, Prompt.objects.get()).state == "completed"
    assert (len(site.asked()), site.effects()) == (2, {"1/0": 1})


@both
def test_a_decision_whose_process_dies_before_its_commit_was_never_made(site: Site, start: Start) -> None:
    """CP13: the gate waits as before, and can be decided."""
    start()
    prompt = site.say("ask")
    gate = asks(site, prompt)
    assert doing(site, "approve", gate.pk, point="before_decision") == -signal.SIGKILL
    gate.refresh_from_db()
    assert gate.gate == GateState.PENDING
    assert payloads(prompt, "action_result", gate.gate_path) == []
    assert ended(site, prompt).state == "completed"
    assert site.effects() == {"1/0": 1, "2/0": 1}


@both
def test_a_rejection_beside_an_approval_that_dies_is_the_one_decision(site: Site, start: Start) -> None:
    """CP16: one of two that decide at once is killed before its commit; the other waits for its lock, and decides."""
    start()
    prompt = site.say("count")
    gate = asks(site, prompt)
    with site.log.open("ab") as log:
        rejects = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.doer", "reject", str(gate.pk)],
            cwd=ROOT,
            env=site.environment(),
            stdout=log,
            stderr=log,
        )
    approves = doing(site, "approve", gate.pk, point="before_decision")
    assert rejects.wait() == 0
    assert approves != 0  # killed, or told that it is decided
    assert ended(site, prompt).state == "completed"
    assert [decision["decision"] for decision in payloads(prompt, "action_result", gate.gate_path)] == ["reject"]
    assert Output.objects.get(pk=gate.pk).gate == GateState.REJECTED
    assert not site.effects()


@both
def test_a_stop_whose_process_dies_before_its_commit_can_be_made_again(site: Site, start: Start) -> None:
    """CP28, T-34: the turn goes on as if nobody had said anything; stopped again, it ends once."""
    start()
    prompt = site.say("take for ever")
    began(site)
    assert doing(site, "stop", prompt.pk, point="before_cancel") == -signal.SIGKILL
    assert not Step.objects.filter(prompt=prompt, type="cancel").exists()
    cancel_prompt(prompt.pk, site.person())
    assert ended(site, prompt).state == "cancelled"
    wait_for(lambda: Prompt.objects.get(pk=prompt.pk).lease_until == 0, "the lease's end", site)
    assert Step.objects.filter(prompt=prompt, path="", type="action_result").count() == 1
    assert site.effects() == {"1/0 began": 1}
