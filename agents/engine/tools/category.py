"""Categories: what groups tools, and the workflows that people choose from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Category:
    """A group of tools or of workflows. Groups stand in the order of `order`, then of their names.

    `icon` is the name of one of the site's icons; "" for none. People see the categories of workflows only.
    """

    id: str
    name: str
    icon: str = ""
    order: int = 100
