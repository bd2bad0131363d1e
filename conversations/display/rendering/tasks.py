"""Task lists: items that begin with "[ ]" or "[x]".

`mdit_py_plugins.tasklists` would do, if it did not look for the list of each item from there backwards: 200 kB of tasks
took it a minute and a half, in which the process answers nobody.
"""

from __future__ import annotations

import re
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

TASK, DONE = "task", "done"
"""The type of the token of a task's box, and the name in its `meta` of whether it is done."""
_BOX = re.compile(r"\[([ xX])\]\s+")


def tasks_plugin(parser: MarkdownIt) -> None:
    """Let the parser read task lists: an item has the class TASK, and its text begins with a token of that type."""
    parser.core.ruler.after("inline", "tasks", _read_tasks)


def _read_tasks(state: StateCore) -> None:
    for (item, paragraph), (_, text) in pairwise(pairwise(state.tokens)):
        if item.type == "list_item_open" and paragraph.type == "paragraph_open" and text.children:
            box, first = _BOX.match(text.content), text.children[0]
            if box and first.type == "text":
                item.attrSet("class", TASK)
                first.content = first.content.removeprefix(box[0].rstrip()).lstrip()
                text.content = text.content[box.end() :]
                text.children.insert(0, Token(TASK, "", 0, meta={DONE: box[1] != " "}))
