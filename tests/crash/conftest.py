"""Fixtures: a site of its own for each test of processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from tests.crash import databases
from tests.crash.acting import Start
from tests.crash.databases import Databases
from tests.crash.model import Model, serving
from tests.crash.processes import kill_all
from tests.crash.site import Site, fresh
from tests.crash.turns import TURNS
from tests.crash.workers import Whole

MakeSource = Callable[[str], Databases]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    with serving(TURNS, tmp_path_factory.mktemp("model"), "model") as server:
        yield server


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeSource]:
    """Databases by kind, each copied from a template that is created on first use."""
    made: dict[str, Databases] = {}
    folder = tmp_path_factory.mktemp("databases")

    def source(kind: str) -> Databases:
        if kind not in made:
            made[kind] = databases.databases(kind, folder, f"pytest_{os.getpid()}")
        return made[kind]

    with ExitStack() as stack:
        yield source
        for each in made.values():
            stack.callback(each.close)


@pytest.fixture(params=["sqlite"])
def site(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    model: Model,
    sources: MakeSource,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Site]:
    """A fresh site. This process is connected to its database until the test ends."""
    before = connections.settings["default"]
    with django_db_blocker.unblock():
        source = sources(request.param)
        try:
            with fresh(f"t{os.getpid()}_{next(_numbers)}", tmp_path, source, model) as made:
                yield made
        finally:
            connections["default"].close()
            connections.settings["default"] = before
            del connections["default"]


_numbers = iter(range(10**6))


@pytest.fixture
def start(site: Site) -> Iterator[Start]:
    """A function that starts a worker of the site. All are stopped at the end."""
    with ExitStack() as stack:

        def make(**more: str) -> Whole:
            worker = Whole(site, **more)
            stack.callback(worker.kill)
            return worker

        yield make
        kill_all(site)
