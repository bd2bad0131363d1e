"""Pipes: each drain hears of every hint, nobody waits for a drain, and what a dead one leaves is removed."""

import os
import subprocess
import sys
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from conversations.database.pipes import Pipe, hint_pipes

ROOT = Path(__file__).parents[3]
SOON = 5.0
KILLED = """
import os, signal
from pathlib import Path
import django
django.setup()
from django.conf import settings
from conversations.database.pipes import Pipe
settings.AGENTSITE_DATA = Path(os.environ["FOLDER"])
pipe = Pipe()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def folder(settings: Settings, tmp_path: Path) -> Path:
    """The folder of the pipes, deeper than the path of a socket may be long."""
    data = tmp_path.joinpath(*["a-folder-of-the-hosts-administrator"] * 4)
    data.mkdir(parents=True)
    settings.AGENTSITE_DATA = data
    return data / "hints"


def test_every_drain_hears_of_a_hint_once(folder: Path) -> None:
    with ExitStack() as stack:
        pipes = [stack.enter_context(closing(Pipe())) for _ in range(3)]
        assert [pipe.wait(0) for pipe in pipes] == [False] * 3
        hint_pipes()
        hint_pipes()
        assert [pipe.wait(SOON) for pipe in pipes] == [True] * 3
        assert [pipe.wait(0) for pipe in pipes] == [False] * 3
    assert not list(folder.iterdir())


def test_without_a_drain_nothing_happens(folder: Path) -> None:
    hint_pipes()
    assert not folder.exists()


def test_only_the_owner_can_enter_the_folder(folder: Path) -> None:
    with closing(Pipe()):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_what_a_killed_drain_leaves_is_removed_by_the_next_hint(folder: Path) -> None:
    """And the others hear of that hint."""
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "agentsite.settings", "FOLDER": str(folder.parent)}
    subprocess.run([sys.executable, "-c", KILLED], cwd=ROOT, env=environment, check=False)
    assert len(list(folder.iterdir())) == 1
    with closing(Pipe()) as pipe:
        hint_pipes()
        assert pipe.wait(SOON)
        assert len(list(folder.iterdir())) == 1
        hint_pipes()
        assert pipe.wait(SOON)


def test_a_pipe_that_somebody_removed_is_missed(folder: Path) -> None:
    """Whoever waits for hints by it makes another one."""
    with closing(Pipe()) as pipe:
        (path,) = folder.iterdir()
        path.unlink()
        with pytest.raises(FileNotFoundError):
            pipe.wait(0)


def test_a_pipe_that_cannot_be_removed_keeps_no_hint_from_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        pipes = [stack.enter_context(closing(Pipe())) for _ in range(3)]
        with monkeypatch.context() as context:
            first = next(iter(folder.iterdir()))
            opens = os.open

            def fails(path: Path, flags: int) -> int:
                if path == first:
                    raise PermissionError("not yours")
                return opens(path, flags)

            context.setattr(os, "open", fails)
            hint_pipes()
        assert sum(pipe.wait(0) for pipe in pipes) == 2


def test_a_pipe_that_cannot_be_made_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again and again."""
    before = len(list(Path("/dev/fd").iterdir()))
    with monkeypatch.context() as context:

        def full(*_: object) -> Path:
            raise OSError(28, "No space left on device")

        context.setattr(Path, "rename", full)
        for _ in range(3):
            with pytest.raises(OSError, match="No space"):
                Pipe()
    assert not list(folder.iterdir())
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_nobody_waits_for_a_drain_that_does_not_read(folder: Path) -> None:
    """A pipe that is full has a hint in it."""
    with closing(Pipe()) as pipe:
        (path,) = folder.iterdir()
        writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        with suppress(BlockingIOError):
            while os.write(writer, b"\n" * 4096):
                pass
        os.close(writer)
        hint_pipes()
        assert pipe.wait(0)
        assert not pipe.wait(0)


def test_a_process_without_a_free_descriptor_loses_its_hint_and_no_pipe(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Pipe()) as pipe:
        with monkeypatch.context() as context:

            def none_left(*_: object) -> int:
                raise OSError(24, "Too many open files")

            context.setattr(os, "open", none_left)
            hint_pipes()
        assert not pipe.wait(0)
        hint_pipes()
        assert pipe.wait(SOON)
