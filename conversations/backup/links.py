"""Where the links of an archive lead, worked out from their targets alone, before any of them is made.

Each link is followed once, and those that others lead through before them, so the time is in proportion to the targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

HOPS_MOST = 40
"""Links that the kernel follows from one name to what it names; see path_resolution(7)."""
ROOM = 2
"""Levels of a workspace in an archive: workspaces/ID."""


@dataclass(eq=False, slots=True)
class _Place:
    """A workspace, a folder on the way to a link, or a link, which has a target."""

    above: _Place | None = None
    below: dict[str, _Place] = field(default_factory=dict)
    target: str = ""
    followed: bool = False
    end: tuple[_Place, int] | None = None
    """What a link leads to: the last known place, and how many levels further down. None if it leads out."""
    hops: int = 0
    """How many links are followed on the way there."""


def leading_inside(links: Mapping[PurePosixPath, str]) -> set[PurePosixPath]:
    """Return which of these links, given by their paths in an archive, stay in their workspace all the way.

    One that the kernel would not follow to its end, because it leads in a circle or through too many others, does not.
    """
    rooms, places = _Place(), {}
    for path, target in links.items():
        here = rooms
        for level, name in enumerate(path.parts, 1):
            if name not in here.below:
                here.below[name] = _Place(here if level > ROOM else None)
            here = here.below[name]
        here.target = target
        places[path] = here
    for place in places.values():
        if not place.followed:
            _follow_all(place)
    return {path for path, place in places.items() if place.end}


def _follow_all(link: _Place) -> None:
    """Follow a link and all that it leads through."""
    under_way = [_follow(link)]
    while under_way:
        needed = next(under_way[-1], None)
        if needed:
            under_way.append(_follow(needed))
        else:
            under_way.pop()


def _follow(link: _Place) -> Iterator[_Place]:
    """Set a link's `end` and `hops`. Yields each link on the way that has to be followed before this goes on.

    Names that are not among the links are taken for folders: if one is not there, the link leads nowhere.
    """
    link.followed = True  # until it has an end, others find none: then they are in a circle with it
    here, further, hops = link.above, 0, 1
    for name in link.target.split("/"):
        if name in ("", "."):
            continue
        if name == ".." and further:
            further -= 1
        elif name == "..":
            here = here and here.above
        elif further or not here or not (below := here.below.get(name)):
            further += 1
        elif not below.target:
            here = below
        else:
            if not below.followed:
                yield below
            if not below.end:
                return
            (here, further), hops = below.end, hops + below.hops
        if here is None:
            return
    if here and hops <= HOPS_MOST:
        link.end, link.hops = (here, further), hops
