"""From commit to frame: WebSocket clients on many conversations, some of which run and stream.

Real processes: web (`python -m agentsite.web`), worker (`manage.py worker`), and the scripted model over loopback HTTP.
Milliseconds of `event` and `delta` are from the moment when the step, or the draft, was first seen in the database (up
to 5 ms after its commit) to the frame's arrival; those of `recorded` from the step's own time, which is before its
record waits for the database. CPU is in percent of one core; memory in MB, shared pages counted once.
`--knee` raises the load until all conversations run; `--figure FILE` draws it. `--pages 3` opens real pages beside.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import figure, support
from bench.clients import Client, CommitClock, Latencies, Site, listening, pages, shown_at
from bench.processes import PATIENCE_SECONDS, ProcessUsage, await_answer, free_port, started

KNEE = (10, 20, 40, 60, 80, 100)
"""The numbers of running conversations, one load after the other."""
PIECE_CHARACTERS = 16
"""Of one delta of the scripted model."""
LAST_WORDS = "That was all of it."


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of each load on one database."""
    said = "So it goes on and on. " * (int(options.round_seconds / options.pause) * PIECE_CHARACTERS // 22)
    call = {"name": "bench_echo", "arguments": {"text": "x" * 200}}
    talks = {"text": said, "pause_seconds": options.pause, "calls": [call]}
    rounds = [talks] * max(int(options.seconds / options.round_seconds), 1)
    port = str(free_port())
    # One person has all the sockets here, and the pages two each.
    sockets = str(options.conversations * options.clients + 2 * options.pages)
    budgets = {"AGENTSITE_MAX_ROUNDS": "1000", "AGENTSITE_TURN_SECONDS": "3600", "AGENTSITE_STREAMS": sockets}
    budgets["PORT"] = port
    with (
        support.server([*rounds, {"text": LAST_WORDS}]) as base_url,
        support.site(options.database, base_url, **budgets),
        started("-m", "agentsite.web") as web,
        started("manage.py", "worker") as worker,
    ):
        return asyncio.run(_loads(options, int(port), {"web": web, "worker": worker, "clients": os.getpid()}))


async def _loads(options: argparse.Namespace, port: int, processes: dict[str, int]) -> dict[str, Any]:
    from asgiref.sync import sync_to_async

    site, conversations = await sync_to_async(_prepared)(port, options.conversations)
    await asyncio.to_thread(await_answer, f"{site.origin}/login/")
    clients = [Client(each) for each in conversations for _ in range(options.clients)]
    rows = []
    async with listening(clients, site):
        for running in KNEE if options.knee else (options.running,):
            before = len(rows)
            rows.append(await _load(options, site, clients, conversations[:running], processes))
            print(f"{options.database}: {rows[before]}", file=sys.stderr)
    return {"database": options.database, "clients": len(clients), "rows": rows}


async def _load(
    options: argparse.Namespace,
    site: Site,
    clients: Sequence[Client],
    running: Sequence[int],
    processes: dict[str, int],
) -> dict[str, Any]:
    from asgiref.sync import sync_to_async

    shown = []
    with CommitClock() as clock:
        async with pages(site, running[: options.pages], LAST_WORDS) as opened:
            for client in clients:
                client.events()
            usage, began = ProcessUsage(processes), time.time()
            prompts = await sync_to_async(_say)(running)
            ended = await _all_ended(prompts)
            seconds, used = time.time() - began, usage.since()
            shown = [await shown_at(page) - ended[at] for page, at in zip(opened, running, strict=False)]
        await asyncio.sleep(1.0)  # for the last frames
    came = [client.events() for client in clients]
    times = Latencies()
    for at, frame in (each for one in came for each in one):
        times.add(at, frame, clock)
    wrong = await sync_to_async(_wrong)(prompts, list(zip(clients, came, strict=True)))
    return {
        "running": len(running), "seconds": seconds, "frames_s": sum(map(len, came)) / seconds,
        **_spread("recorded", times.recorded), **_spread("event", times.event), **_spread("delta", times.delta),
        **used, "wrong": wrong,
        **({"page_ms": max(shown) * 1000} if shown else {}),
    }  # fmt: skip


def _spread(name: str, values: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=100) if len(values) > 1 else [0.0] * 99
    return {f"{name}_p50": cuts[49], f"{name}_p99": cuts[98]}


def _prepared(port: int, count: int) -> tuple[Site, list[int]]:
    """Return the site with its owner signed in, and this number of conversations."""
    from django.conf import settings
    from django.test import Client as Browser

    from conversations.prompts.start import start_conversation

    owner, browser = support.person(), Browser()
    browser.force_login(owner)
    name = settings.SESSION_COOKIE_NAME
    site = Site(port, (name, browser.cookies[name].value))
    return site, [start_conversation(owner, f"Conversation {n}").pk for n in range(count)]


def _say(conversations: Sequence[int]) -> dict[int, int]:
    """Start a turn in each conversation. Returns the conversation of each prompt, by id."""
    from conversations.models import Conversation
    from conversations.prompts.start import start_prompt

    owner = support.person()
    return {start_prompt(Conversation.objects.get(pk=pk), owner, "go").pk: pk for pk in conversations}


async def _all_ended(prompts: dict[int, int]) -> dict[int, float]:
    """Wait until all these turns have ended. Returns when each conversation's turn ended."""
    from conversations.models import Prompt

    give_up = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up:
        rows = [row async for row in Prompt.objects.filter(pk__in=prompts).values_list("pk", "ended_at")]
        if all(ended for _, ended in rows):
            return {prompts[pk]: ended.timestamp() for pk, ended in rows if ended}
        await asyncio.sleep(0.2)
    raise SystemExit("The turns did not end. Is the worker running?")


def _wrong(prompts: dict[int, int], came: Sequence[tuple[Client, list[tuple[float, dict[str, Any]]]]]) -> int:
    """Return how many clients on running conversations got events that differ from the ledger, or in another order."""
    from agents.engine.outputs.events import EventFold
    from conversations.ledger.reading import read_steps

    wrong = 0
    for prompt, conversation in prompts.items():
        fold = EventFold(conversation, prompt)
        told = [(event.seq, event.type) for step in read_steps(conversation, prompt) for event in fold.add(step)]
        for client, events in came:
            if client.conversation == conversation:
                wrong += told != [(event["seq"], event["type"]) for _, event in events if "seq" in event]
    return wrong


def _drawn(found: Sequence[dict[str, Any]]) -> str:
    series = {}
    for each in found:
        for what in ("event_p50", "event_p99"):
            name = f"{each['database']} {what[-3:]}"
            series[name] = [(row["running"], row[what]) for row in each["rows"]]
    title = f"Commit to frame, {found[0]['clients']} WebSocket clients"
    targets = {"p50: 50 ms": 50.0, "p99: 250 ms": 250.0}
    return figure.lines(title, "conversations that run and stream", "ms", series, targets)


def main() -> None:
    """Measure on both databases, each in a process of its own, and print the table and the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=100)
    parser.add_argument("--clients", type=int, default=2, help="clients on each conversation")
    parser.add_argument("--running", type=int, default=20, help="conversations that run and stream")
    parser.add_argument("--seconds", type=float, default=20, help="how long they run")
    parser.add_argument("--round-seconds", type=float, default=2, help="how long one answer streams")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two pieces of an answer")
    parser.add_argument("--pages", type=int, default=0, help="real pages, each on a running conversation")
    parser.add_argument(
        "--knee", type=int, nargs="?", const=1, default=0, help="measure growing loads, one after the other"
    )
    parser.add_argument("--figure", default="", help="write the chart to this SVG file")
    found = support.on_databases(parser, "bench.push", measure)
    names = list(found[0]["rows"][0])
    rows = [[each["database"], *(row[name] for name in names)] for each in found for row in each["rows"]]
    print(support.table(("database", *names), rows))
    print(json.dumps(found))
    if path := parser.parse_args().figure:
        Path(path).write_text(_drawn(found))


if __name__ == "__main__":
    main()
