"""Which tests run: by default what needs no service; with `--services` all, and a missing service is a failure."""

import gc
import os
import shutil
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from tests.budget import commit_number, set_budget

SERVICES = ("postgres", "browser", "crash", "clients")  # markers; pyproject.toml says what each needs
FOLDERS = {"browser": ("browser",), "crash": ("crash", "canary"), "clients": ("clients",)}
"""Where `make test-browser` and the like look for such tests: to collect all others takes a minute."""
BY_TURNS = (
    "tests/agentsite/test_serve.py", "tests/agentsite/test_start.py", "tests/attacks/test_bodies.py",
    "tests/conversations/context/", "tests/conversations/push/test_processes.py", "tests/docs/test_startagentapp.py",
    "tests/passthrough/", "tests/plugins/test_process_trees.py", "tests/workflows/test_secrets.py",
)  # fmt: skip
"""Tests that start whole sites, or many processes: with `--by-turns` half of them run for a commit."""
DATABASE = {"db", "transactional_db"}
LEFT_OUT = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--services",
        action="store_true",
        default=os.environ.get("AGENTSITE_REQUIRE_SERVICES") == "1",
        help="also run what needs PostgreSQL, a browser or packages, or takes long; a missing service is a failure",
    )
    parser.addoption(
        "--part",
        type=_part,
        metavar="K/N",
        help="run only the K-th of N parts of the files, counted from 0; what is marked postgres runs in any case",
    )
    parser.addoption(
        "--by-turns",
        action="store_true",
        help="of the tests that start sites, run only half; which half differs from commit to commit",
    )


def _part(text: str) -> tuple[int, int]:
    number, of = map(int, text.split("/"))
    return number % of, of


def pytest_configure() -> None:
    """Passwords are hashed as ever, only less often: people are made in almost every test."""
    os.environ.pop("PYTEST_ADDOPTS", None)  # they are of this run, not of those that tests start
    gc.disable()  # until all tests are collected: ten thousand are no garbage, and looking at them takes a quarter more
    set_budget()
    settings.PASSWORD_HASHERS = ["tests.hashing.Quick"]


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("django_db") or DATABASE.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("database")
        for name in _needs(item):
            if name in FOLDERS and Path(item.location[0]).parts[1] not in FOLDERS[name]:
                raise pytest.UsageError(f"{item.nodeid} needs {name}: the Makefile looks for such tests elsewhere.")
    skipped = [] if config.getoption("services") else [item for item in items if _needs(item)]
    config.stash[LEFT_OUT] = Counter(_needs(item)[0] for item in skipped)
    left_out = {*skipped, *_of_other_parts(config.getoption("part"), items)}
    if config.getoption("by_turns"):
        left_out |= {item for item in items if item.nodeid.startswith(BY_TURNS) and not _is_its_turn(item.nodeid)}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def _is_its_turn(nodeid: str) -> bool:
    return zlib.crc32(nodeid.encode()) % 2 == commit_number() % 2


def _of_other_parts(part: tuple[int, int] | None, items: list[pytest.Item]) -> list[pytest.Item]:
    if part is None:
        return []
    number, of = part
    others = [item for item in items if zlib.crc32(item.location[0].encode()) % of != number]
    return [item for item in others if not item.get_closest_marker("postgres")]


def pytest_collection_finish() -> None:
    """Nor does any later look at what was collected: it takes a quarter of a second."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With several processes each tells the one that prints; all of them collected the same."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        left_out: Counter[str] = session.config.stash.get(LEFT_OUT, Counter())
        output["left_out"] = dict(left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash.get(LEFT_OUT, Counter())
    if counts:
        named = ", ".join(f"{counts[name]} {name}" for name in SERVICES if counts[name])
        terminalreporter.write_line(
            f"Left out, because they need a service or much time: {named}. `make test-all` runs them."
        )


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("postgres") and connection.vendor != "postgresql":
        pytest.fail("This test needs PostgreSQL: name it in DATABASE_URL, as `make test-all` does.", pytrace=False)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """The test database. It can only be deleted once the connection that sends hints is closed."""
    from conversations.database import hints

    yield
    hints.flush()


@pytest.fixture(autouse=True)
def _lifted_for_flushes(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test with transactions of its own ends with a flush, which the ledger's triggers refuse: they are lifted then.

    They stand while the test runs, and again after it.
    """
    marker = request.node.get_closest_marker("django_db")
    if not (marker and marker.kwargs.get("transaction")) and "transactional_db" not in request.fixturenames:
        yield
        return
    from conversations.database import guard
    from tests.guarding import remove_guard

    request.getfixturevalue("transactional_db")
    guard.install()
    yield
    remove_guard()


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium on this machine."""
    return find_chromium() or pytest.fail("This test needs Chromium: install the package `chromium`.", pytrace=False)


def find_chromium() -> str | None:
    """The path of a Chromium on this machine; None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def _needs(item: pytest.Item) -> list[str]:
    return [name for name in SERVICES if item.get_closest_marker(name)]
