"""Links in a workspace that lead through each other without end: what a backup takes, a restore must take, soon."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.backup.folders import WORKSPACES, stays_inside
from conversations.backup.links import HOPS_MOST, leading_inside
from conversations.backup.work import back_up, restore
from tests.attacks.test_archives import workspace

__all__ = ["workspace"]
databases = pytest.mark.django_db(transaction=True)


def chain(folder: Path, count: int, end: str) -> None:
    """a0 leads to a1, that to a2, and the last to `end`."""
    for number in range(count):
        (folder / f"a{number}").symlink_to(f"a{number + 1}" if number + 1 < count else end)


def round_trip(workspace: Path, archive: Path) -> int:
    """Back up, and restore in place of what is there; return how many links were left out."""
    assert not back_up(archive).left_out
    return restore(archive, force=True).left_out


@databases
def test_a_chain_of_links_comes_back_as_far_as_the_kernel_follows_it(workspace: Path, tmp_path: Path) -> None:
    """Beyond, it led nowhere before either. 1,200 links were more than Python recurses."""
    (workspace / "file").write_text("x")
    chain(workspace, 1200, "file")
    opened = {path.name for path in workspace.iterdir() if path.exists()}
    assert len(opened) == HOPS_MOST + 1
    assert round_trip(workspace, tmp_path / "backup.tar.gz") == 1200 - HOPS_MOST
    assert {path.name for path in workspace.iterdir()} == opened
    assert (workspace / f"a{1200 - HOPS_MOST}").read_text() == "x"


@databases
def test_links_through_links_come_back_unless_they_lead_out(workspace: Path, tmp_path: Path) -> None:
    """Thousands through the same chain, a circle, and a link that a chain leads out through."""
    chain(workspace, 30, ".")
    (workspace / "in" / "to").mkdir(parents=True)
    (workspace / "in" / "to" / "up").symlink_to("..")
    (workspace / "out").symlink_to("in/to/up/../../x")
    (workspace / "round").symlink_to("about")
    (workspace / "about").symlink_to("round")
    for number in range(2_000):
        (workspace / f"b{number}").symlink_to("a0/out" if number % 2 else "a0/in")
    assert round_trip(workspace, tmp_path / "backup.tar.gz") == 1_000 + 3
    assert sum(path.name.startswith("b") for path in workspace.iterdir()) == 1_000
    assert (workspace / "b0").is_dir()


def test_the_longest_of_targets_and_chains_are_followed_once() -> None:
    """A hundred thousand links, each through the next, some with a target as long as the system allows.

    To look at each alone took the square of the time: 40 s for 20,000 links, half of which led out.
    """
    places = [PurePosixPath(WORKSPACES, "1", f"l{number}") for number in range(100_000)]
    links = {place: f"l{number + 1}" for number, place in enumerate(places)}
    links |= dict.fromkeys(places[:1000], "d/" * 1000 + "../" * 1000 + "l1")
    began = time.process_time()
    assert leading_inside(links) == set(places[-HOPS_MOST:])
    assert time.process_time() - began < 15


NAMES = st.sampled_from("abc")
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TARGETS = st.lists(NAMES | st.sampled_from(["..", ".", ""]), min_size=1, max_size=4).map("/".join).filter(bool)


@settings(max_examples=100, deadline=None)
@given(made=st.dictionaries(PATHS, TARGETS, max_size=7))
def test_what_is_kept_leads_where_the_kernel_says(
    tmp_path_factory: pytest.TempPathFactory, made: dict[str, str]
) -> None:
    """Any few links: what is kept leads to something inside or to nothing, and what leads inside is kept."""
    top = tmp_path_factory.mktemp("links")
    room = top / WORKSPACES / "1"
    room.mkdir(parents=True)
    links = {}
    for name, target in made.items():
        place, path = room / name, PurePosixPath(WORKSPACES, "1", name)
        if stays_inside(path, target) and not any(parent in links for parent in path.parents):
            place.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(place):
                place.symlink_to(target)
                links[path] = target
    kept = leading_inside(links)
    for path in links.keys() - kept:
        assert leads(top / path, room) != "inside"
    for path in links.keys() - kept:
        (top / path).unlink()
    assert all(leads(top / path, room) in ("inside", "nowhere") for path in kept)


def leads(link: Path, room: Path) -> str:
    """Where the kernel finds itself when it has followed a link and all that it leads through."""
    try:
        found = os.open(link, os.O_PATH)
    except OSError as error:
        return "round and round" if error.errno == errno.ELOOP else "nowhere"
    try:
        return "inside" if Path(f"/proc/self/fd/{found}").readlink().is_relative_to(room) else "out"
    finally:
        os.close(found)
