"""The whole site in real processes, and a real browser."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.agentsite.processes import free_port, processes_of, started, variables, wait_for
from tests.browser.turns import TURNS

PASSWORD = "correct horse battery staple"
WAIT_MS = 30_000.0
"""How long a page may take to tell what happened: machines that test are busy."""


@dataclass
class Site:
    """A site that runs: where it is, the variables of its processes, and its administrator."""

    url: str
    environment: dict[str, str]
    username: str = "ann"
    password: str = PASSWORD


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`manage.py serve` on a fresh SQLite database, against the scripted model server."""
    with serving(tmp_path_factory.mktemp("site"), TURNS) as site:
        yield site


@contextmanager
def serving(folder: Path, turns: dict[str, Any] | None = None, username: str = "ann", **more: str) -> Iterator[Site]:
    """A site with its data in `folder`, whose model says `turns`, else the demo model; `more` variables for it.

    Two web processes share its port: what one of them does, the pages of the other must show.
    """
    with ExitStack() as stack:
        model = {} if turns is None else stack.enter_context(_scripted(folder, turns))
        url = f"http://127.0.0.1:{free_port()}"
        environment = variables(
            folder / "data",
            PORT=url.rpartition(":")[2],
            DJANGO_SUPERUSER_USERNAME=username,
            DJANGO_SUPERUSER_PASSWORD=PASSWORD,
            **{"AGENTSITE_WEB": "2", **model, **more},
        )
        stack.callback(wait_for, lambda: _ended(folder / "data"))
        stack.enter_context(started("manage.py", "serve", environment=environment, log=folder / "serve.log"))
        wait_for(lambda: is_healthy(url))
        yield Site(url, environment, username)


def _ended(data: Path) -> bool:
    """Kill what a killed `serve` left, which would write to its folder until it ends by itself. Whether all is gone."""
    left = processes_of(data)
    for process in left:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return not left


@contextmanager
def _scripted(folder: Path, turns: dict[str, Any]) -> Iterator[dict[str, str]]:
    """A model server that says `turns`, as the settings that name it."""
    script, port_file = folder / "script.json", folder / "port"
    script.write_text(json.dumps(turns))
    model = ("-m", "tests.wire", "--port", "0", "--port-file", str(port_file), "--script", str(script))
    with started(*model, environment=variables(folder / "model"), log=folder / "model.log"):
        wait_for(port_file.exists)
        address = f"http://127.0.0.1:{port_file.read_text().strip()}/v1"
        yield {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "scripted"}


def is_healthy(url: str) -> bool:
    """Whether the site at this address can do its work."""
    with suppress(OSError), urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
        return bool(answer.status == 200)
    return False


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    """A headless Chromium.

    Ended with this package's tests: Playwright keeps an event loop in this thread, beside which Django refuses to work.
    """
    expect.set_options(timeout=WAIT_MS)
    with browsing(chromium) as browser:
        yield browser


@contextmanager
def browsing(chromium: str) -> Iterator[Browser]:
    """A headless Chromium that asks nobody outside for anything."""
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*quiet, "--disable-sync"])
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A person's browser: its own cookies, and no error in its console."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(WAIT_MS)
    errors: list[str] = []
    context.on("console", lambda message: errors.append(message.text) if _is_error(message) else None)
    context.on("weberror", lambda error: errors.append(str(error.error)))
    yield context
    context.close()
    assert not errors


def _is_error(message: ConsoleMessage) -> bool:
    """A form that is refused is no error, though the browser says so of its answer."""
    return message.type == "error" and not re.search("status of (400|409) ", message.text)


@pytest.fixture
def page(context: BrowserContext, site: Site) -> Page:
    """A window, logged in."""
    return signed_in(context.new_page(), site)


@pytest.fixture
def away(browser: Browser, page: Page, context: BrowserContext) -> Iterator[Page]:
    """A window whose console may tell of requests that failed."""
    failing = browser.new_context(storage_state=context.storage_state())
    failing.set_default_timeout(WAIT_MS)
    yield failing.new_page()
    failing.close()


def signed_in(page: Page, site: Site) -> Page:
    """This page, once its site's administrator has signed in."""
    page.goto(site.url)
    page.get_by_label("User name").fill(site.username)
    page.get_by_label("Password").fill(site.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{site.url}/")
    return page
