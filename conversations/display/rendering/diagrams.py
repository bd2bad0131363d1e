"""Diagrams: a fence of Mermaid as a figure, with its source below."""

from __future__ import annotations

import re
from hashlib import sha256

from django.utils.html import escape

from conversations.display.rendering.place import Place

LANGUAGE = "mermaid"
KINDS = {
    "architecture": "Architecture diagram",
    "block": "Block diagram",
    "c4": "C4 diagram",
    "classdiagram": "Class diagram",
    "erdiagram": "Entity relationship diagram",
    "flowchart": "Flowchart",
    "gantt": "Gantt chart",
    "gitgraph": "Git graph",
    "graph": "Flowchart",
    "journey": "User journey",
    "kanban": "Kanban board",
    "mindmap": "Mind map",
    "packet": "Packet diagram",
    "pie": "Pie chart",
    "quadrantchart": "Quadrant chart",
    "radar": "Radar chart",
    "requirement": "Requirement diagram",
    "sankey": "Sankey diagram",
    "sequencediagram": "Sequence diagram",
    "statediagram": "State diagram",
    "timeline": "Timeline",
    "treemap": "Treemap",
    "xychart": "Chart",
    "zenuml": "Sequence diagram",
}
"""The kinds of diagrams in words, by how their sources begin, in lower case."""
_BEFORE = re.compile(r"(?:\s+|---\n.*?\n---[ \t]*\n|%%\{.*?\}%%|%%[^\n]*)+", re.DOTALL)
"""What may stand before the first word: front matter, directives and comments."""
_WORD = re.compile(r"[a-z0-9]+")
BEFORE_MOST = 2_000
"""Characters in which the first word is looked for. A directive without an end is searched to the end for each."""


def is_diagram(info: str) -> bool:
    """Whether a fence with this beside its opening is a diagram."""
    return info.split(maxsplit=1)[:1] == [LANGUAGE]


def digest(source: str) -> str:
    """Return the name of a diagram: sha256 of its source. It stays the same when a streaming text is recorded."""
    return sha256(source.rstrip("\n").encode()).hexdigest()


def kind_of(source: str) -> str:
    """Return what kind of diagram this is, in words; "Diagram" for one that is not known."""
    beginning = source[:BEFORE_MOST]
    before = _BEFORE.match(beginning)
    word = _WORD.match(beginning.lower(), before.end() if before else 0)
    name = word[0] if word else ""
    return next((kind for start, kind in KINDS.items() if name.startswith(start)), "Diagram")


def figure(source: str, place: Place) -> str:
    """Return a diagram as a figure, not yet sanitised: a picture for each theme, and the source."""
    kind, address = kind_of(source), escape(f"{place.diagrams}{digest(source)}.svg?theme=")
    pictures = "".join(
        f'<img class="on-{theme}" src="{address}{theme}" alt="{kind}. Its source is below." loading="lazy">'
        for theme in ("light", "dark")
    )
    return (
        f'<figure class="diagram"><div class="code-head"><span class="grow">{kind}</span></div>'
        f'<div class="canvas" role="group" aria-label="{kind}" tabindex="0">{pictures}</div>'
        '<details><summary>Source</summary><pre tabindex="0"><code>'
        f"{escape(source)}</code></pre></details></figure>"
    )
