"""A workspace, and both kinds of machine: with a sandbox and without."""

import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.plugins.shell import probe, tree
from tests.plugins.calls import SECRET, Desk, Services, running


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A workspace, and beside it a secret."""
    workspace, outside = tmp_path / "workspaces" / "1", tmp_path / "data"
    workspace.mkdir(parents=True, mode=0o700)
    outside.mkdir(mode=0o700)
    (outside / "secret.key").write_text(SECRET)
    return Desk(workspace, outside, Services(user=1, folder=workspace))


@pytest.fixture
def boxed(request: pytest.FixtureRequest) -> None:
    """A machine with a sandbox that works; without one the test is left out, or fails where all must run."""
    if not probe.sandbox():
        missing = "bubblewrap does not work here"
        pytest.fail(missing) if request.config.getoption("--services", default=False) else pytest.skip(missing)


@pytest.fixture
def unboxed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without."""
    monkeypatch.setattr(probe, "sandbox", lambda: None)


@pytest.fixture(params=["boxed", "unboxed"])
def machine(request: pytest.FixtureRequest) -> str:
    """Once each."""
    request.getfixturevalue(request.param)
    return str(request.param)


@pytest.fixture
def mark() -> Iterator[str]:
    """A word by which a test's own processes are found; at the end there are none."""
    word = uuid.uuid4().hex
    yield word
    left = running(word)
    tree.send(signal.SIGKILL, left)
    assert not left
