"""Every page of a site with a million steps: how long the web server takes for it, and its queries.

Real processes: the web server (`python -m agentsite.web`), asked over HTTP by an administrator whose conversations all
are: one of 200 messages, thousands of short ones, 10,000 that wait for approval, 100,000 runs of workflows, and as many
copies of the long one as make it a million steps. One of each kind is made by a worker's own functions, the others are
copies of it. `first` are the milliseconds of the first load of the page in a web process, `again` the median of the
five after it, `cpu` those of CPU that the web process takes for each of these, on SQLite with the database. `queries`
are those of one load, counted in this process, and `kB` is its size without compression.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from typing import Any

from bench import support
from bench.copies import copy
from bench.page import load, questions, replies, talked
from bench.processes import await_answer, cpu_seconds, free_port, started

LOOKS = 5
ASKS = "Run it, please."
SHORT = "Good morning."
PAGES = {
    "chat of 200 messages": "/c/{long}/?turns=100",
    "chat, as it opens": "/c/{long}/",
    "new conversation": "/",
    "list, search": "/list/?q=region",
    "list, archived": "/list/?archived=1",
    "inspector": "/prompts/{turn}/",
    "usage": "/c/{long}/usage/",
    "print": "/c/{long}/print/",
    "approvals of a chat": "/c/{waiting}/decide/",
    "account": "/account/",
    "workflows": "/workflows/",
    "runs": "/workflows/runs/",
    "runs, search": "/workflows/runs/?q=nowhere",
    "inbox": "/approvals/",
    "inbox, an approval": "/approvals/{gate}/",
    "inbox, search": "/approvals/?q=nowhere",
    "admin": "/admin/",
    "admin, an approval": "/admin/conversations/approval/{gate}/change/",
    "api, conversations": "/api/conversations/",
    "api, approvals": "/api/approvals/",
}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures on one database."""
    port, turns = str(free_port()), range(1, options.messages // 2 + 1)
    asks = {"text": "I ask first.", "calls": [{"name": "shell_run", "arguments": {"command": "true"}}]}
    script = replies(turns) | {ASKS: [asks, {"text": "Done."}], SHORT: [{"text": "Good morning to you."}]}
    with support.server(script) as base_url, support.site(options.database, base_url, PORT=port):
        began = time.perf_counter()
        places = _fill(options, turns)
        print(f"{options.database}: made in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        client = _client()
        cookie, pages = f"sessionid={client.cookies['sessionid'].value}", PAGES | _changelists()
        with started("-m", "agentsite.web") as web:
            origin = f"http://127.0.0.1:{port}"
            await_answer(f"{origin}/login/")
            load(f"{origin}/account/", cookie)
            rows = []
            for name, path in pages.items():
                there = path.format(**places)
                rows.append([name, *_loaded(origin + there, cookie, web), _queries(client, there)])
                print(rows[-1], file=sys.stderr)
        return {"database": options.database, "rows": rows}


def _fill(options: argparse.Namespace, turns: range) -> dict[str, int]:
    """Store all conversations. Returns the ids that stand in the addresses of pages."""
    from django.db import connection

    from conversations.models import Conversation, Output, Step

    long, short = (Conversation.objects.get(pk=pk) for pk in (talked(questions(turns)), talked([SHORT])))
    waiting, run = _waiting(), _run()
    places = {"long": long.pk, "turn": long.prompts.get(number=1).pk, "waiting": waiting.pk}
    places["gate"] = Output.objects.pending().get().pk
    steps = {each: each.steps.count() for each in (long, short, waiting, run)}
    many = {run: options.runs, waiting: options.approvals, short: options.chats}
    left = options.steps - sum(steps[each] * times for each, times in many.items())
    for each, times in {long: max(0, left // steps[long]), **many}.items():
        copy(each, times)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    print(f"{Step.objects.count():,} steps", file=sys.stderr)
    return places


def _waiting() -> Any:
    """Return a conversation that waits for a decision."""
    from conversations.prompts.start import begin_conversation

    prompt = begin_conversation(support.person(), ASKS)
    asyncio.run(support.drained())
    return prompt.conversation


def _run() -> Any:
    """Return the conversation of a run that has ended."""
    from workflows import discovery
    from workflows.running import start_run

    workflow = next(each for each in discovery.installed().values() if each.name.startswith("area"))
    prompt = start_run(workflow, support.person(), {"customer": "C-1"})
    asyncio.run(support.drained())
    return prompt.conversation


def _changelists() -> dict[str, str]:
    """Return the list of each table in the admin."""
    from django.contrib.admin import site
    from django.urls import reverse

    names = [f"{model._meta.app_label}_{model._meta.model_name}" for model in site._registry]
    return {f"admin, {name}": reverse(f"admin:{name}_changelist") for name in names}


def _client() -> Any:
    """Return a client in which the administrator is signed in."""
    from django.test import Client

    person = support.person()
    person.is_staff = person.is_superuser = True
    person.save()
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(person)
    return client


def _loaded(address: str, cookie: str, web: int) -> tuple[float, float, float, int]:
    """Return the milliseconds of the first load of a page, of later ones, of CPU for each of these, and its kB."""
    first, size = load(address, cookie)
    used = cpu_seconds(web)
    again = statistics.median(load(address, cookie)[0] for _ in range(LOOKS))
    return first, again, 1000 * (cpu_seconds(web) - used) / LOOKS, size // 1000


def _queries(client: Any, path: str) -> int:
    """Return how many queries a load of this page takes."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200
    return len(queries)


def main() -> None:
    """Measure on both databases and print a table for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200, help="of the long conversation")
    parser.add_argument("--steps", type=int, default=1_000_000, help="of all conversations together, at least")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--approvals", type=int, default=10_000)
    parser.add_argument("--chats", type=int, default=5_000)
    for found in support.on_databases(parser, "bench.pages", measure):
        print(f"\n{found['database']}\n")
        print(support.table(["page", "first ms", "again ms", "cpu ms", "kB", "queries"], found["rows"]))


if __name__ == "__main__":
    main()
