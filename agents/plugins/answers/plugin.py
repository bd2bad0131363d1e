"""The plugin that tells an agent what the page shows of its answers: diagrams, formulas, code in colours, and so on."""

from __future__ import annotations

from agents.engine.paths import parent
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.state import Nothing

TEXT = """\
# Your answers

People read your answers on a page that renders Markdown, with tables, task lists and footnotes. Use what makes an \
answer clearer:

- Code: a fence with the name of its language.
- Diagrams: a fence of `mermaid` (flowchart, sequenceDiagram, classDiagram, stateDiagram-v2, erDiagram, gantt, pie, \
mindmap, timeline and others). Keep them small, and quote labels with special characters: `A["f(x)"]`. \
No `%%{init}%%`, no `click`.
- Formulas: LaTeX in `$...$`, or in `$$...$$` on lines of their own.
- Images: `![words](chart.png)`, only by the name of a file of this conversation."""
"""The same in every round, so that what a model server has cached of a conversation stays valid."""


class Answers(Plugin[Nothing]):
    """The plugin that tells what the page shows. It prepares first: its text does not change, those of others may.

    Only an agent whose answer people read is told: not one that a policy, a workflow or another agent has called, and
    not one whose answer has a form, which is shown as it is.
    """

    name = "answers"
    order = 0

    async def prepare(self, round: Round) -> None:
        """Add the text, if people read the answer."""
        if not parent(round.path) and round.final is None:
            round.context.append(TEXT)
