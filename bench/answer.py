"""A long answer that streams to an open page: the CPU that it takes of the web server and of the browser.

Real processes: web (`python -m agentsite.web`), the scripted model over loopback HTTP, and Chromium. `plain` is prose,
lists, tables and code; `rich` has formulas, diagrams, task lists and footnotes besides. Both are streamed at the same
pace. Milliseconds of CPU, medians: `web` of the web server and what it started, `page` of the page's main thread,
and of that for scripts and layout; `again` of the web server for a load of the page afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from bench import support
from bench.processes import await_answer, cpu_seconds, free_port, started

PAUSE_SECONDS = 0.003
"""Between two deltas of the model, of 16 characters each: faster than most models write."""
PATIENCE_MS = 300_000
LAST = "That is all."
PLAIN = """## Part {number}

Sales **rose** by {number} % against the *previous* quarter, mostly in `store-{number}`, see
[the report](https://example.org/reports/{number}) for how they were counted.

1. Take the export of the quarter.
2. Leave out returns:
   - those that arrived late,
   - those without a receipt.

```python
def total(rows: list[dict[str, float]], store: str = "store-{number}") -> float:
    \"\"\"Return what this store sold, without returns.\"\"\"
    return sum(row["amount"] for row in rows if row["store"] == store and not row["returned"])
```

| Store | Sold | Change |
|---|---:|---:|
| North | {number}40 | +4 % |
| South | {number}10 | -1 % |

"""
RICH = """- [x] counted part {number}
- [ ] compared with last year[^{number}]

The mean is $\\bar x = \\frac{{1}}{{n}}\\sum_{{i=1}}^{{n}} x_i$, and its error

$$
s = \\sqrt{{\\frac{{1}}{{n-1}}\\sum_{{i=1}}^{{n}}(x_i-\\bar x)^2}} + {number}
$$

```mermaid
flowchart LR
  A[Export {number}] --> B{{Complete?}}
  B -->|yes| C[Count]
  B -->|no| A
```

[^{number}]: As far as it was open.

"""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of both kinds of answers, which are streamed by turns."""
    texts = {"plain": _text(PLAIN, options.characters), "rich": _text(PLAIN + RICH, options.characters)}
    script = {kind: [{"text": text, "pause_seconds": PAUSE_SECONDS}] for kind, text in texts.items()}
    port = free_port()
    with (
        support.server(script) as base_url,
        support.site(options.database, base_url, PORT=str(port)),
        started("-m", "agentsite.web") as web,
        Pages(f"http://127.0.0.1:{port}", web) as pages,
    ):
        found = [(kind, pages.stream(kind)) for _ in range(options.rounds) for kind in texts]
    rows = []
    for kind in texts:
        figures = [each for name, each in found if name == kind]
        middle = {name: statistics.median(each[name] for each in figures) for name in figures[0]}
        rows.append({"database": options.database, "answer": kind, **middle})
    return {"rows": rows}


def _text(part: str, characters: int) -> str:
    parts = [part.format(number=number) for number in range(characters // len(part) + 1)]
    return f"{''.join(parts)[:characters]}\n\n{LAST}"


class Pages:
    """Chromium, signed in at a site whose web server is this process."""

    def __init__(self, origin: str, web: int) -> None:
        self._origin, self._web = origin, web
        self._stack = ExitStack()

    def __enter__(self) -> Pages:
        from django.test import Client
        from playwright.sync_api import sync_playwright

        await_answer(f"{self._origin}/login/")
        client = Client()
        client.force_login(support.person())
        session = client.cookies["sessionid"].value
        playwright = self._stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        self._stack.callback(browser.close)
        self._context = browser.new_context()
        self._context.add_cookies([{"name": "sessionid", "value": session, "url": self._origin}])
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def stream(self, kind: str) -> dict[str, float]:
        """Return what one answer took while it streamed to an open page, and when that was loaded again."""
        with ThreadPoolExecutor() as beside:  # Django refuses to work in a thread in which Playwright does
            conversation = beside.submit(_new_conversation).result()
            page = self._context.new_page()
            session = self._context.new_cdp_session(page)
            session.send("Performance.enable")
            page.goto(f"{self._origin}/c/{conversation}/")
            busy, cpu, began = _busy(session), cpu_seconds(self._web), time.monotonic()
            turn = beside.submit(_answer, conversation, kind)
            page.get_by_text(LAST).first.wait_for(timeout=PATIENCE_MS)
            turn.result()
            page.locator(".growing").wait_for(state="detached", timeout=PATIENCE_MS)
            page.wait_for_load_state("networkidle")
        figures = {"seconds": time.monotonic() - began, "web": 1000 * (cpu_seconds(self._web) - cpu)}
        figures |= {name: 1000 * (now - busy[name]) for name, now in _busy(session).items()}
        cpu = cpu_seconds(self._web)
        page.reload()
        page.wait_for_load_state("networkidle")
        figures["again"] = 1000 * (cpu_seconds(self._web) - cpu)
        page.close()
        return figures


def _busy(session: Any) -> dict[str, float]:
    """Return the seconds that the page's main thread was busy for so far."""
    found = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return {"page": found["TaskDuration"], "scripts": found["ScriptDuration"], "layout": found["LayoutDuration"]}


def _new_conversation() -> int:
    from conversations.prompts.start import start_conversation

    return int(start_conversation(support.person()).pk)


def _answer(conversation: int, kind: str) -> None:
    from conversations.models import Conversation
    from conversations.prompts.start import start_prompt

    start_prompt(Conversation.objects.get(pk=conversation), support.person(), kind)
    asyncio.run(support.drained())


def main() -> None:
    """Measure on both databases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--characters", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    found = support.on_databases(parser, "bench.answer", measure)
    rows = [row for each in found for row in each["rows"]]
    print(support.table(list(rows[0]), [list(row.values()) for row in rows]))


if __name__ == "__main__":
    main()
