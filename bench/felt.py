"""What a person feels on the page of a conversation: how soon it shows what they did, and what came of it.

Real processes: web, worker, the demo model, and Chromium. Milliseconds, from the key that sends a message, as
the page's own clock sees them. `own` is until the message is on the page and painted, `site's` until the site's own
turn is in its place, `text` until the first text of the answer, `approve` from the click that approves an `echo` until
its result is on the page: the median and the greatest of so many. `requests` and `kB` are those of a page that is
opened for the first time, with its files, without compression.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
from typing import Any

from bench import support
from bench.processes import await_answer, free_port, started

PATIENCE_MS = 60_000
GREETS, ECHO = "Hello there", "run `echo felt $((40 + 2))`"
WATCH = """() => {
  const seen = window.felt = {}, at = (name) => { seen[name] ??= performance.now(); };
  const turns = document.getElementById("turns"), own = document.getElementById("own"), before = turns.children.length;
  const look = () => {
    if (own.children.length && !seen.own) requestAnimationFrame(() => setTimeout(() => at("own")));
    if (turns.children.length > before) at("site's");
    const turn = turns.children[before];
    if (turn?.querySelector(".turn .prose, .turn .growing")?.textContent.trim()) at("text");
    if (turn?.textContent.includes("felt 42")) at("approve");
  };
  const everything = { childList: true, subtree: true, characterData: true };
  new MutationObserver(look).observe(document.querySelector(".thread"), everything);
  document.addEventListener("keydown", () => { seen.start = performance.now(); }, { capture: true, once: true });
}"""
CLICKED = """() => {
  document.addEventListener("click", () => { felt.clicked = performance.now(); }, { capture: true, once: true });
}"""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures on one database."""
    model, port = str(free_port()), str(free_port())
    with (
        started("-m", "agents.providers.demo", "--port", model),
        support.site(options.database, f"http://127.0.0.1:{model}/v1", PORT=port, AGENTSITE_DEMO="1"),
        started("-m", "agentsite.web"),
        started("manage.py", "worker"),
    ):
        origin = f"http://127.0.0.1:{port}"
        await_answer(f"{origin}/healthz")  # which is bad until the worker runs
        return {"database": options.database, **_felt(origin, _session(), options.times)}


def _session() -> str:
    """Return a session of somebody who may decide about their own calls."""
    from django.contrib.auth.models import Permission
    from django.test import Client

    person, client = support.person(), Client()
    person.user_permissions.add(Permission.objects.get(codename="decide_own_approval"))
    client.force_login(person)
    return str(client.cookies["sessionid"].value)


def _felt(origin: str, session: str, times: int) -> dict[str, float]:
    """Return the figures of a browser at this site."""
    from playwright.sync_api import sync_playwright

    found: dict[str, list[float]] = {"own": [], "site's": [], "text": [], "approve": []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        pages = _Pages(browser, origin, session)
        page = pages.open("/new/")
        _say(page, GREETS)
        page.wait_for_url("**/c/**")
        weight = pages.weight(page.url)
        for _ in range(times):
            _watch(page)
            _say(page, GREETS)
            _wait_for_end(page)
            _add(page, found, ("own", "site's", "text"), "start")
            _watch(page)
            _say(page, ECHO)
            approve = page.locator(".ask").get_by_role("button", name="Approve").first
            approve.wait_for()
            page.evaluate(CLICKED)
            approve.click()
            _wait_for_end(page)
            _add(page, found, ("approve",), "clicked")
        browser.close()
    figures = {f"{name} p50 ms": statistics.median(each) for name, each in found.items()}
    return figures | {f"{name} worst ms": max(each) for name, each in found.items()} | weight


class _Pages:
    """Pages of a browser, each with its own cache, signed in."""

    def __init__(self, browser: Any, origin: str, session: str) -> None:
        self._browser, self._origin = browser, origin
        self._cookie = {"name": "sessionid", "value": session, "url": origin}

    def open(self, path: str, heard: list[Any] | None = None) -> Any:
        """Open a page. All responses are added to `heard`."""
        context = self._browser.new_context()
        context.set_default_timeout(PATIENCE_MS)
        context.add_cookies([self._cookie])
        page = context.new_page()
        if heard is not None:
            page.on("response", lambda answer: heard.append(answer))  # noqa: PLW0108 - Playwright marks what it is given
        page.goto(self._origin + path.removeprefix(self._origin))
        return page

    def weight(self, address: str) -> dict[str, float]:
        """Return how many requests a first load takes, and how many kB come."""
        heard: list[Any] = []
        page = self.open(address, heard)
        page.wait_for_load_state("networkidle")
        size = sum(len(each.body()) for each in heard if not 300 <= each.status < 400)  # a redirect has no body
        page.context.close()
        return {"requests": len(heard), "kB": size // 1000}


def _watch(page: Any) -> None:
    _wait_for_end(page)
    page.evaluate(WATCH)


def _wait_for_end(page: Any) -> None:
    """Wait until a message can be sent: the turn has ended."""
    page.locator("[data-send]:not([disabled])").wait_for()


def _say(page: Any, message: str) -> None:
    page.get_by_label("Message").fill(message)
    page.get_by_label("Message").press("Enter")


def _add(page: Any, found: dict[str, list[float]], names: tuple[str, ...], since: str) -> None:
    """Add what the page has seen, in milliseconds."""
    page.wait_for_function("(names) => names.every((name) => name in felt)", arg=list(names))
    seen = page.evaluate("felt")
    for name in names:
        found[name].append(seen[name] - seen[since])


def main() -> None:
    """Measure on both databases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    found = support.on_databases(parser, "bench.felt", measure)
    rows = [[name, *(each[name] for each in found)] for name in found[0] if name != "database"]
    print(support.table(["", *(each["database"] for each in found)], rows))


if __name__ == "__main__":
    main()
