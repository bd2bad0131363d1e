"""What a person sees of a turn whose processes die under it: nothing is lost, nothing happens twice."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.agentsite.processes import processes_of, run, started, wait_for
from tests.browser.conftest import Site, is_healthy, serving, signed_in
from tests.browser.test_first_turn import say, waiting
from tests.browser.turns import says

pytestmark = pytest.mark.browser

SOON = {"AGENTSITE_LEASE_SECONDS": "6", "AGENTSITE_RENEW_SECONDS": "1", "AGENTSITE_SWEEP_SECONDS": "0.5"}
"""A worker that was lost is missed soon."""
TAKEN_OVER_MS = 45_000.0
"""In which a turn whose worker was lost goes on, and a site that has just started begins its first one."""
SENTENCES = "".join(f"Sentence number {n} of a slow answer.\n\n" for n in range(1, 41))
STREAM = f"{SENTENCES}That was the last word."
TURNS: dict[str, list[dict[str, Any]]] = {
    "Do three risky things.": [
        says("I would do three.", "echo one >> done.txt", "echo two >> done.txt", "echo three >> done.txt"),
        says("Two were done, one was not."),
    ],
    "Tell me slowly.": [{"text": STREAM, "pause_seconds": 0.05}],
    "Ask nobody here.": [says("I ask.", "echo over the API"), says("It was decided elsewhere.")],
    "*": [says("Hello.")],
}


class Standing:
    """A site whose processes can be killed, all or one, and started again on the same data."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.folder, self.site = folder, site
        self.data = Path(site.environment["AGENTSITE_DATA"])

    def kill_all(self) -> None:
        """SIGKILL to each of its processes, until none is left."""

        def left() -> list[int]:
            pids = processes_of(self.data)
            for pid in pids:
                self._kill(pid)
            return pids

        wait_for(lambda: not left())

    @contextmanager
    def again(self) -> Iterator[None]:
        """The site on the same data and address, until the block ends."""
        with started("manage.py", "serve", environment=self.site.environment, log=self.folder / "again.log"):
            wait_for(lambda: is_healthy(self.site.url))
            yield
            self.kill_all()

    def kill_drain(self) -> None:
        """SIGKILL to the process that runs a turn now."""
        worker = self._one("SELECT worker FROM conversations_prompt WHERE lease_until > 0")
        self._kill(int(worker.rpartition("/")[2].partition(".")[0]))

    def steps(self, conversation: str, type: str) -> int:
        """How many steps of a type its ledger has."""
        query = "SELECT count(*) FROM conversations_step WHERE conversation_id = ? AND type = ?"
        return int(self._one(query, re.findall(r"/c/(\d+)/", conversation)[0], type))

    def is_clean(self) -> bool:
        """Whether every ledger keeps the rules."""
        return run("manage.py", "verify_ledger", "--all", environment=self.site.environment).returncode == 0

    def _one(self, query: str, *values: str) -> str:
        database = next(self.data.rglob("agentsite.sqlite3"))
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10) as connection:
            return str(connection.execute(query, values).fetchone()[0])

    def _kill(self, pid: int) -> None:
        assert pid > 1
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def standing(tmp_path: Path) -> Iterator[Standing]:
    with serving(tmp_path, TURNS, **SOON) as site:
        standing = Standing(tmp_path, site)
        yield standing
        standing.kill_all()


@pytest.fixture
def page(browser: Browser, standing: Standing) -> Iterator[Page]:
    """A window of somebody who is new. Its console tells of the connections that are lost."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(TAKEN_OVER_MS)
    yield signed_in(context.new_page(), standing.site)
    context.close()


def ended(page: Page) -> None:
    expect(page.locator("[data-send]")).to_be_visible(timeout=TAKEN_OVER_MS)


def test_three_risky_steps_outlive_every_process(page: Page, standing: Standing) -> None:
    """T-10, T-13, T-15: all is killed while three wait; two are approved, one rejected; each runs once, in order."""
    address = say(page, standing.site, "Do three risky things.")
    expect(page.locator(".ask")).to_have_count(3, timeout=TAKEN_OVER_MS)
    standing.kill_all()
    expect(page.locator("#offline")).to_be_visible()
    with standing.again():
        admin = page.context.new_page()
        for command, button in (("three", "^Approve"), ("two", "^Reject"), ("one", "^Approve")):
            waiting(admin, standing.site, f"echo {command} >> done.txt")
            if button == "^Reject":
                admin.get_by_role("link", name="Reject…").click()
                admin.get_by_label("Reason").fill("Not the second.")
            admin.get_by_role("button", name=re.compile(button)).click()
            expect(admin.get_by_text(re.compile("(Approved|Rejected) by you")).first).to_be_visible()
        expect(page.get_by_text("Two were done, one was not.")).to_be_visible(timeout=TAKEN_OVER_MS)
        expect(page.locator("#offline")).to_be_hidden()
        expect(page.get_by_text("\u201cNot the second.\u201d")).to_be_visible()
        assert [file.read_text() for file in standing.data.rglob("done.txt")] == ["one\nthree\n"]
        page.goto(address)
        expect(page.locator("details.done")).to_have_count(3)
        assert standing.is_clean()


def test_a_worker_killed_in_mid_stream_is_followed_by_another(page: Page, standing: Standing) -> None:
    """T-28: the page that stays open comes to show the whole text, once; then a new message is taken."""
    address = say(page, standing.site, "Tell me slowly.")
    page.evaluate("window.neverReloaded = true")
    expect(page.get_by_text("Sentence number 3 of")).to_be_visible(timeout=TAKEN_OVER_MS)
    standing.kill_drain()
    expect(page.get_by_text("That was the last word.")).to_be_visible(timeout=TAKEN_OVER_MS)
    ended(page)
    for number in (1, 3, 40):
        expect(page.get_by_text(f"Sentence number {number} of")).to_have_count(1)
    assert page.evaluate("window.neverReloaded")
    page.get_by_label("Message").fill("And now?")
    page.get_by_label("Message").press("Enter")
    expect(page.locator("#turns").get_by_text("Hello.", exact=True)).to_be_visible()
    ended(page)
    assert standing.steps(address, "text") == 2
    assert standing.is_clean()


def test_a_tab_closed_in_mid_stream_misses_nothing(page: Page, standing: Standing) -> None:
    """T-29: the turn goes on without anybody; whoever comes later reads all of it."""
    address = say(page, standing.site, "Tell me slowly.")
    expect(page.get_by_text("Sentence number 2 of")).to_be_visible(timeout=TAKEN_OVER_MS)
    later = page.context.new_page()
    page.close()
    wait_for(lambda: standing.steps(address, "text") == 1)
    later.goto(address)
    expect(later.get_by_text("That was the last word.")).to_be_visible()
    expect(later.locator(".growing")).to_have_count(0)
    expect(later.locator(".prose p")).to_have_count(41)


def test_a_stop_in_mid_stream_keeps_what_was_said(page: Page, standing: Standing) -> None:
    """What had come stays, marked, also after a reload; the turn can go on, or be asked again."""
    say(page, standing.site, "Tell me slowly.")
    expect(page.get_by_text("Sentence number 3 of")).to_be_visible(timeout=TAKEN_OVER_MS)
    page.get_by_role("button", name="Stop").click()
    for _ in range(2):
        expect(page.locator(".cut-off")).to_have_text("Stopped here.")
        expect(page.get_by_text("Sentence number 3 of")).to_have_count(1, timeout=TAKEN_OVER_MS)
        expect(page.get_by_text("Sentence number 3 of")).to_be_visible()
        expect(page.get_by_text("That was the last word.")).to_have_count(0)
        expect(page.get_by_role("button", name="Go on from here")).to_be_visible()
        expect(page.get_by_role("button", name="Ask again")).to_be_visible()
        page.reload()


def test_an_approval_over_the_api_needs_no_browser(page: Page, standing: Standing) -> None:
    """T-11: nobody looks while it is decided and the turn goes on; the page tells it all afterwards."""
    address = say(page, standing.site, "Ask nobody here.")
    expect(page.locator(".ask")).to_be_visible(timeout=TAKEN_OVER_MS)
    later = page.context.new_page()
    page.close()
    made = run(
        "manage.py", "api_key", standing.site.username, "--scopes", "read,decide", environment=standing.site.environment
    )
    key = re.findall(r"agk_\w+", made.stdout)[0]
    gate = asked(standing.site, key, "/api/approvals/")["results"][0]
    digest = {"digest": gate["approval"]["digest"]}
    asked(standing.site, key, f"/api/approvals/{gate['id']}/approve/", digest)
    wait_for(lambda: asked(standing.site, key, f"/api/prompts/{gate['prompt']}/")["state"] == "completed")
    later.goto(address)
    expect(later.get_by_text("It was decided elsewhere.")).to_be_visible()
    expect(later.locator("details.done")).to_contain_text("Approved by you over the API")


def asked(site: Site, key: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """What the API answers."""
    data = json.dumps(body).encode() if body is not None else None
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(site.url + path, data, headers), timeout=30) as answer:
        return json.load(answer)
