"""A long chat page: how long the web server takes for it, the first time and again.

Real processes: web (`python -m agentsite.web`), asked over HTTP by the conversation's owner. Each turn is one message
and one answer with headings, lists, code and a table; before every tenth answer a chart and a table are shown.
`first` is the first load after a start of the web server, once for each start: templates have been read by then, for a
page of one turn that says something else. `again` are the loads after it. Milliseconds: least, median, most.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
import urllib.request
from threading import Thread
from typing import Any

from bench import support
from bench.processes import await_answer, free_port, started

SHOWS_EVERY = 10
"""Every such turn shows a chart and a table."""
PAUSE_SECONDS = 0.02
"""Interval between two looks at a turn that runs."""
QUESTION = "What about region {number}?"
ANSWER = """## Region {number}: what the figures say

Sales **rose** by {number} % against the *previous* quarter, mostly in `store-{number}`. See
[the report](https://example.org/reports/{number}) for how they were counted.

1. Take the export of the quarter.
2. Leave out returns:
   - those that arrived late,
   - those without a receipt.
3. Sum up by store.

```python
def total(rows: list[dict[str, float]], store: str = "store-{number}") -> float:
    \"\"\"Return what this store sold, without returns.\"\"\"
    return sum(row["amount"] for row in rows if row["store"] == store and not row["returned"])
```

| Store | Sold | Returned | Change |
|---|---:|---:|---:|
| North | {number}40 | 12 | +4 % |
| South | {number}10 | 9 | -1 % |
| East | {number}75 | 31 | +7 % |
| West | {number}05 | 2 | 0 % |

### What to do next

> Ask the stores in the East why so much came back.

Then compare with last year, and repeat the count in four weeks.
"""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures on one database."""
    answers = replies(range(options.turns + 1))
    port = str(free_port())
    with (
        support.server(answers) as base_url,
        support.site(options.database, base_url, PORT=port),
    ):
        began = time.perf_counter()
        short, long = talked(questions(range(1))), talked(questions(range(1, options.turns + 1)))
        print(f"{options.database}: made in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        first: list[float] = []
        again: list[float] = []
        for _ in range(options.starts):
            with started("-m", "agentsite.web"):
                origin = f"http://127.0.0.1:{port}"
                await_answer(f"{origin}/login/")
                cookie = _cookie()
                load(f"{origin}/c/{short}/", cookie)
                found = [load(f"{origin}/c/{long}/?turns={options.turns}", cookie) for _ in range(options.loads + 1)]
            first.append(found[0][0])
            again += [milliseconds for milliseconds, _ in found[1:]]
        return {
            "database": options.database, "messages": 2 * options.turns, "kB": found[0][1] // 1000,
            **_spread("first", first), **_spread("again", again),
        }  # fmt: skip


def questions(numbers: range) -> list[str]:
    """Return what is asked in these turns."""
    return [QUESTION.format(number=number) for number in numbers]


def replies(numbers: range) -> dict[str, list[dict[str, Any]]]:
    """Return the model's answers in these turns, by what is asked."""
    return {question: _replies(number) for question, number in zip(questions(numbers), numbers, strict=True)}


def _replies(number: int) -> list[dict[str, Any]]:
    """Return the model's answers in this turn."""
    text = {"text": ANSWER.format(number=number)}
    if number % SHOWS_EVERY:
        return [text]
    months = ["January", "February", "March", "April", "May", "June"]
    series = [{"name": name, "values": [number * 7 % 31 + n for n in range(6)]} for name in ("2024", "2025")]
    chart = {"title": f"Sales of region {number}", "kind": "line", "labels": months, "series": series}
    table = {"title": "By month", "columns": ["Month", "Sold"], "rows": [[name, number] for name in months]}
    calls = [{"name": "chart_show", "arguments": chart}, {"name": "table_show", "arguments": table}]
    return [{"text": "Here they are.", "calls": calls}, text]


def talked(messages: list[str]) -> int:
    """Make a conversation with a turn for each of these messages. Returns its id."""
    from conversations.prompts.start import start_conversation, start_prompt

    owner = support.person()
    conversation, drain = start_conversation(owner), support.new_drain()
    working = Thread(target=lambda: asyncio.run(drain()))
    for message in messages:
        start_prompt(conversation, owner, message)
        if message == messages[0]:
            working.start()
        while _running(conversation):
            time.sleep(PAUSE_SECONDS)
    drain.stopping = True
    working.join()
    return int(conversation.pk)


def _running(conversation: Any) -> bool:
    from conversations.models import State

    states = set(conversation.prompts.values_list("state", flat=True))
    if states - {State.QUEUED, State.RUNNING, State.COMPLETED}:
        raise SystemExit("A turn did not complete.")
    return states != {State.COMPLETED}


def _cookie() -> str:
    """Return a session of the owner."""
    from django.test import Client

    client = Client()
    client.force_login(support.person())
    return f"sessionid={client.cookies['sessionid'].value}"


def load(address: str, cookie: str) -> tuple[float, int]:
    """Return the milliseconds to load a page, and its bytes."""
    began = time.perf_counter()
    with urllib.request.urlopen(urllib.request.Request(address, headers={"Cookie": cookie}), timeout=60) as answer:
        size = len(answer.read())
    return (time.perf_counter() - began) * 1000, size


def _spread(name: str, values: list[float]) -> dict[str, float]:
    return {f"{name} min": min(values), f"{name} med": statistics.median(values), f"{name} max": max(values)}


def main() -> None:
    """Measure on both databases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--starts", type=int, default=3, help="how often the web server is started")
    parser.add_argument("--loads", type=int, default=10, help="loads after the first, for each start")
    found = support.on_databases(parser, "bench.page", measure)
    print(support.table(list(found[0]), [list(each.values()) for each in found]))


if __name__ == "__main__":
    main()
