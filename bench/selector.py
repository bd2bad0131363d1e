"""The selector and the history of somebody with 300 workflows and 100,000 runs, beside somebody else with some.

Real processes: the web server (`python -m agentsite.web`). The first run of each workflow is begun by the site's own
functions; the others are rows with that one's content, in a conversation each, one in fifty failed. Milliseconds are
medians of seven over HTTP, the page whole; `cpu` is what the web server used for it, on SQLite with the database.
`rare` is a word that one line has, the oldest, and `nowhere` one that no line and no result has: all are read.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import urllib.request
from datetime import timedelta
from typing import Any

from bench import support
from bench.processes import ProcessUsage, await_answer, free_port, started

AT_ONCE = 5_000
"""Runs that are stored in one transaction."""
LOOKS = 7
SIZE = 50
"""Runs on a page of the API."""
PAGES = {
    "selector": "/workflows/",
    "selector, search": "/workflows/?q=area+7",
    "form": "/workflows/area00.job00/",
    "history": "/workflows/runs/",
    "history of one": "/workflows/area00.job00/runs/",
    "failed": "/workflows/runs/?state=failed",
    "waiting": "/workflows/runs/?state=waiting_for_approval",
    "by the command": "/workflows/runs/?started_by=command",
    "starred": "/workflows/runs/?starred=1",
    "oldest page": "/workflows/runs/?after=0",
    "search, often": "/workflows/runs/?q=customer",
    "search, rare": "/workflows/runs/?q=rare",
    "search, nowhere": "/workflows/runs/?q=nowhere",
    "api": "/api/workflows/runs/",
    "api, last page": "/api/workflows/runs/?page={last}",
}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures on one database."""
    port = str(free_port())
    with support.site(options.database, "http://127.0.0.1:1/v1", PORT=port):
        began = time.perf_counter()
        _fill(options.runs)
        print(f"{options.database}: filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        cookie = _cookie()
        found: dict[str, float] = {}
        with started("-m", "agentsite.web") as web:
            origin = f"http://127.0.0.1:{port}"
            await_answer(f"{origin}/login/")
            for name, path in PAGES.items():
                address = origin + path.format(last=options.runs * 9 // 10 // SIZE)
                found[f"{name} ms"], found[f"{name} cpu ms"] = _loaded(address, cookie, web)
        return {"database": options.database, "runs": options.runs, **found}


def _fill(runs: int) -> None:
    """Store so many runs, nine in ten of the person whose pages are loaded."""
    from django.db import connection, transaction

    from conversations.ledger import wakeup
    from conversations.models import Conversation, Prompt, State
    from conversations.usage import quotas
    from workflows import discovery
    from workflows.running import start_run

    wakeup.wake = lambda *_: None  # no worker runs
    quotas.check = lambda *_: None  # all are begun at once
    mine, other = support.person(), support.person("other")
    jobs = [each for each in discovery.installed().values() if each.name.startswith("area")]
    with transaction.atomic():
        firsts = [start_run(each, mine, {"customer": f"C-{n}" if n else "rare"}) for n, each in enumerate(jobs)]
        steps = [run.steps.order_by("seq")[0] for run in firsts]
        Prompt.objects.update(state=State.COMPLETED)
        Conversation.objects.update(active_prompt=None)
    for done in range(0, runs, AT_ONCE):
        with transaction.atomic():
            _copy(range(done, min(done + AT_ONCE, runs)), (mine, other), steps)
    _star(mine)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _copy(numbers: range, people: tuple[Any, Any], steps: list[Any]) -> None:
    """Store runs with these numbers, one in ten of them of the other, with what the ledger of a first one says."""
    from django.db.models import QuerySet
    from django.utils import timezone

    from agents.engine.ledger import canonical
    from conversations.models import Conversation, ConversationKind, Origin, Output, Prompt, State, Step

    now = timezone.now()
    later = now + timedelta(seconds=30)
    talks = Conversation.objects.bulk_create(
        Conversation(owner=people[n % 10 == 9], kind=ConversationKind.RUN, title="Job", seq=2) for n in numbers
    )
    begun = [steps[n % len(steps)] for n in numbers]
    prompts = Prompt.objects.bulk_create(
        Prompt(
            conversation=talk,
            number=1,
            asked_by=people[n % 10 == 9],
            policy=step.content["policy"],
            input=f"/{step.content['policy'].partition(':')[2]} customer=C-{n}",
            origin=Origin.COMMAND if n % 1000 < 2 else Origin.WORKFLOW,
            state=State.FAILED if n % 100 < 2 else State.COMPLETED,
            ended_at=later,
        )
        for n, talk, step in zip(numbers, talks, begun, strict=True)
    )
    QuerySet(Step).bulk_create(
        Step(
            conversation=talk, prompt=prompt, seq=1, actor=step.actor, type=step.type, payload=step.payload,
            time=now, digest=step.digest,
        )
        for talk, prompt, step in zip(talks, prompts, begun, strict=True)
    )  # fmt: skip
    result = {"created_at": now.isoformat(), "parent": "", "path": "", "position": 2, "type": "result"}
    Output.objects.bulk_create(
        Output(
            conversation=talk,
            prompt=prompt,
            position=2,
            type="result",
            data=canonical(result | {"output": f"Done for C-{n}, in a sentence or two."}),
        )
        for n, talk, prompt in zip(numbers, talks, prompts, strict=True)
    )


def _star(mine: Any) -> None:
    """Give a star to five workflows and five runs, the oldest ones."""
    from conversations.models import Prompt
    from workflows.models import RunStar, WorkflowStar

    oldest = Prompt.objects.filter(asked_by=mine).order_by("pk")[:5]
    RunStar.objects.bulk_create(RunStar(user=mine, prompt=prompt) for prompt in oldest)
    WorkflowStar.objects.bulk_create(WorkflowStar(user=mine, name=f"area{n:02}.job00") for n in range(5))


def _cookie() -> str:
    from django.test import Client

    client = Client()
    client.force_login(support.person())
    return f"sessionid={client.cookies['sessionid'].value}"


def _loaded(address: str, cookie: str, web: int) -> tuple[float, float]:
    """Return the milliseconds to load a page, and those of CPU that the web server takes for it.

    Without the first request, in which a process reads its templates.
    """
    _load(address, cookie)
    usage = ProcessUsage({"web": web})
    times = [_load(address, cookie) for _ in range(LOOKS)]
    return statistics.median(times), usage.since()["web_cpu"] / 100 * sum(times) / LOOKS


def _load(address: str, cookie: str) -> float:
    began = time.perf_counter()
    with urllib.request.urlopen(urllib.request.Request(address, headers={"Cookie": cookie}), timeout=60) as answer:
        answer.read()
    return (time.perf_counter() - began) * 1000


def main() -> None:
    """Measure on both databases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=112_000, help="of both people, nine in ten of the one")
    found = support.on_databases(parser, "bench.selector", measure)
    rows = [[name, *(each[name] for each in found)] for name in found[0] if name != "database"]
    print(support.table(["", *(each["database"] for each in found)], rows))


if __name__ == "__main__":
    main()
