"""A live page without a browser: elements by id and version, changed by the frames of the page protocol."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

VOID = {"br", "hr", "input", "img", "link", "meta"}


class Lacks(Exception):
    """A frame refers to an element that the page does not have, so it must ask for everything again."""


class Element:
    """An element with its children. Text is among them as strings."""

    def __init__(self, tag: str = "", attributes: dict[str, str] | None = None) -> None:
        self.tag, self.attributes = tag, attributes or {}
        self.children: list[Element | str] = []

    @property
    def id(self) -> str:
        return self.attributes.get("id", "")

    @property
    def version(self) -> str:
        return self.attributes.get("data-v", "")

    @property
    def elements(self) -> list[Element]:
        return [child for child in self.children if isinstance(child, Element)]

    def find(self, name: str) -> Element | None:
        """The element with this id."""
        if self.id == name:
            return self
        return next((found for child in self.elements if (found := child.find(name))), None)

    def text(self) -> str:
        """Its text."""
        pieces = (child if isinstance(child, str) else child.text() for child in self.children)
        return re.sub(r"\s+", " ", " ".join(pieces)).strip()

    def plain(self) -> Any:
        """Its tags, attributes and text for comparisons, without what differs between two loads of the same page."""
        left_out = {"hx-swap-oob", "data-from"}
        attributes = {name: value for name, value in self.attributes.items() if name not in left_out}
        shown = [child for child in self.children if isinstance(child, str) or not child.is_token]
        children = (child.plain() if isinstance(child, Element) else child.strip() for child in shown)
        return self.tag, attributes, [child for child in children if child]

    @property
    def is_token(self) -> bool:
        """Whether it is the CSRF token of a form. In a pushed form, the page fills it in."""
        return self.attributes.get("name") == "csrfmiddlewaretoken"


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.stack = [Element()]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.stack[-1].children.append(element)
        if tag not in VOID:
            self.stack.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.stack.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.stack[-1].children.append(data)


def parsed(html: str) -> Element:
    """Parse HTML; return its elements below a root without a tag."""
    tree = _Tree()
    tree.feed(html)
    tree.close()
    assert len(tree.stack) == 1
    return tree.stack[0]


class Page:
    """The turns of a page, as an open browser shows them."""

    def __init__(self, html: str) -> None:
        found = parsed(html).find("turns")
        assert found
        self.turns = found
        self.replaced: list[str] = []

    @property
    def seq(self) -> int:
        return int(self.turns.attributes["data-seq"])

    def take(self, frame: str) -> None:
        """Merge a frame. Raises Lacks."""
        self.replaced = []
        for fresh in parsed(frame).elements:
            if fresh.id == "turns":
                self._turns(fresh)
            elif target := self.turns.find(fresh.id):
                self._merge(target, fresh, self.turns)
            elif fresh.id.startswith("d-"):
                raise Lacks(fresh.id)

    def _turns(self, fresh: Element) -> None:
        if int(fresh.attributes["data-seq"]) < self.seq:
            return
        if int(fresh.attributes.get("data-after", 0)) > self.seq:
            raise Lacks(f"what came before {fresh.attributes['data-after']}")
        for turn in fresh.elements:
            if there := self.turns.find(turn.id):
                self._merge(there, turn, self.turns)
            else:
                self._insert(self.turns, turn, len(self.turns.children))
        self.turns.attributes["data-seq"] = fresh.attributes["data-seq"]

    def _merge(self, old: Element, fresh: Element, root: Element) -> None:
        if fresh.version and fresh.version == old.version:
            return
        if "data-merge" not in fresh.attributes:
            _replace(root, old, fresh)
            self.replaced.append(fresh.id)
            return
        first = int(fresh.attributes.get("data-from", 0))
        if first > len(old.elements):
            raise Lacks(f"{old.id} has {len(old.elements)} pieces, not {first}")
        kept, ids = old.elements[:first], {child.id for child in fresh.elements}
        mine = {child.id: child for child in old.elements[first:] if child.id in ids}
        old.children = [*kept, *mine.values()]
        for at, child in enumerate(fresh.elements, len(kept)):
            if "data-same" in child.attributes:
                if child.id not in mine or mine[child.id].version != child.version:
                    raise Lacks(child.id)
            elif child.id in mine:
                self._merge(mine[child.id], child, old)
            else:
                self._insert(old, child, at)
        if fresh.version:
            old.attributes["data-v"] = fresh.version

    def _insert(self, parent: Element, child: Element, at: int) -> None:
        if _names_others(child):
            raise Lacks(child.id)
        parent.children.insert(at, child)
        self.replaced.append(child.id)


def _names_others(element: Element) -> bool:
    own = {"data-same", "data-from"} & element.attributes.keys()
    return bool(own) or any(_names_others(child) for child in element.elements)


def _replace(root: Element, old: Element, fresh: Element) -> None:
    for at, child in enumerate(root.children):
        if child is old:
            root.children[at] = fresh
        elif isinstance(child, Element):
            _replace(child, old, fresh)
