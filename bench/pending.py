"""Waiting approvals: ten thousand of them, each in a conversation of its own, beside an idle worker.

Real processes: web (`python -m agentsite.web`), worker (`manage.py worker`), the scripted model over loopback HTTP. The
first turn is a worker's own; the others are begun and recorded by the same functions, with that one's steps. Seconds of
`idle` are watched before anything is asked: how many leases are held meanwhile, CPU in percent of one core, and the
worker's memory before and after (MB, shared pages counted once). Milliseconds of pages are medians of five over HTTP,
by somebody who may decide all, `chat` by the one whose turns wait. `start` is from the answer to an approval to the
start of its tool, in the ledger.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import urllib.request
from typing import Any

from bench import support
from bench.processes import PATIENCE_SECONDS, ProcessUsage, await_answer, free_port, started

AT_ONCE = 200
"""Turns that are recorded in one transaction."""
START_SECONDS = 30
"""Seconds until all processes of a worker have started. What they use until then is not counted."""
LOOKS = 5
SAMPLE = 20
"""The number of ledgers that are verified."""
PAGES = {
    "admin list": "/admin/conversations/approval/",
    "admin start": "/admin/",
    "inbox": "/approvals/",
    "chat": "/",
    "api": "/api/approvals/",
    "healthz": "/healthz",
}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures on one database."""
    port = str(free_port())
    asks = {"text": "I ask first.", "calls": [{"name": "shell_run", "arguments": {"command": "true"}}]}
    with (
        support.server([asks, {"text": "Done."}]) as base_url,
        support.site(options.database, base_url, PORT=port),
    ):
        began = time.perf_counter()
        _wait_for_people(options.approvals)
        made = time.perf_counter() - began
        print(f"{options.database}: {options.approvals} wait, made in {made:.0f} s", file=sys.stderr)
        with started("-m", "agentsite.web") as web, started("manage.py", "worker") as worker:
            origin = f"http://127.0.0.1:{port}"
            await_answer(f"{origin}/healthz")
            figures = _watched(options.idle, {"web": web, "worker": worker})
            chief, owner = _cookie("chief"), _cookie("bench")
            pages = {name: _median(origin + path, owner if name == "chat" else chief) for name, path in PAGES.items()}
            figures |= {f"{name} ms": found for name, found in pages.items()}
            figures["start ms"] = _start(origin)
            figures["worker MB after"] = ProcessUsage({"worker": worker}).since()["worker_mb"]
        return {"database": options.database, "wait": options.approvals, "made s": made, **figures}


def _wait_for_people(approvals: int) -> None:
    """Create this number of turns that wait for a person, each in a conversation of its own."""
    import asyncio

    from django.db import transaction

    from agents.engine.ledger import Step
    from conversations.ledger import wakeup
    from conversations.ledger.locked import locked_turn
    from conversations.models import Prompt, State
    from conversations.prompts.start import begin_conversation
    from conversations.verification.stored import verify

    owner = support.person()
    wakeup.wake = lambda *_: None  # no worker runs yet
    first = begin_conversation(owner, "Do it.")
    asyncio.run(support.drained())
    recorded = [Step(row.actor, row.type, row.content, row.path) for row in first.steps.exclude(seq=1).order_by("seq")]
    for done in range(1, approvals, AT_ONCE):
        with transaction.atomic():
            for number in range(done, min(done + AT_ONCE, approvals)):
                prompt = begin_conversation(owner, f"Do it, number {number}.")
                with locked_turn(prompt.pk) as turn:
                    turn.append(recorded)
    waiting = Prompt.objects.filter(state=State.WAITING)
    assert waiting.count() == approvals, "they do not wait"
    for prompt in waiting.order_by("?")[:SAMPLE]:
        assert not verify(prompt.conversation_id).problems, "a ledger that no worker would have written"


def _watched(seconds: float, processes: dict[str, int]) -> dict[str, Any]:
    """Return what the processes use while nobody asks for anything, and how many turns a worker held."""
    from conversations.models import Prompt

    time.sleep(START_SECONDS)
    usage, held, until = ProcessUsage(processes), 0, time.monotonic() + seconds
    before = usage.since()
    while time.monotonic() < until:
        held = max(held, Prompt.objects.filter(lease_until__gt=0).count())
        time.sleep(0.5)
    used = usage.since()
    cpu = {f"idle {name} cpu": used[f"{name}_cpu"] for name in processes}
    return {"held": held, **cpu, "worker MB": before["worker_mb"], "worker MB idle": used["worker_mb"]}


def _cookie(name: str) -> str:
    """Return a session of this person, who may decide everything, except the owner of the waiting turns."""
    from django.contrib.auth.models import User
    from django.test import Client

    may = name != "bench"
    person, _ = User.objects.get_or_create(username=name, defaults={"is_staff": may, "is_superuser": may})
    client = Client()
    client.force_login(person)
    return f"sessionid={client.cookies['sessionid'].value}"


def _median(address: str, cookie: str) -> float:
    """Return the milliseconds to load a page, without the first request, in which a process reads its templates."""
    times = []
    for _ in range(LOOKS + 1):
        began = time.perf_counter()
        with urllib.request.urlopen(urllib.request.Request(address, headers={"Cookie": cookie}), timeout=60) as answer:
            answer.read()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times[1:])


def _start(origin: str) -> float:
    """Return the median of the milliseconds from a decision until the tool starts."""
    from conversations.accounts.keys import make_key
    from conversations.models import Output

    owner = support.person()
    _may_decide(owner)
    key = make_key(owner, "bench", ["decide"])[1]
    gates = Output.objects.pending().order_by("?")[:LOOKS]
    return statistics.median(_approved(origin, key, gate) for gate in gates)


def _may_decide(owner: Any) -> None:
    from django.contrib.auth.models import Permission

    owner.user_permissions.add(Permission.objects.get(codename="decide_own_approval"))


def _approved(origin: str, key: str, gate: Any) -> float:
    from conversations.models import Step

    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    body = json.dumps({"digest": gate.digest}).encode()
    asked = urllib.request.Request(f"{origin}/api/approvals/{gate.pk}/approve/", body, headers)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        answer.read()
    answered, give_up = time.time(), time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up:
        if begun := Step.objects.filter(prompt=gate.prompt_id, path=gate.path, type="action_start").first():
            return (begun.time.timestamp() - answered) * 1000
        time.sleep(0.01)
    raise SystemExit("The tool did not start.")


def main() -> None:
    """Measure on both databases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--approvals", type=int, default=10_000)
    parser.add_argument("--idle", type=float, default=30.0, help="seconds to watch the idle site")
    found = support.on_databases(parser, "bench.pending", measure)
    rows = [[name, *(each[name] for each in found)] for name in found[0] if name != "database"]
    print(support.table(["", *(each["database"] for each in found)], rows))


if __name__ == "__main__":
    main()
