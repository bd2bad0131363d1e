"""What a person may grant of `shell.program`: which conditions on its arguments allow no more than they say."""

from __future__ import annotations

from collections.abc import Sequence

from agents.engine.grants.conditions import Condition, Operator

PLAIN = frozenset(
    {
        *(
            "basename",
            "cat",
            "cmp",
            "comm",
            "cp",
            "cut",
            "date",
            "df",
            "diff",
            "dirname",
            "du",
            "echo",
            "expand",
            "file",
        ),
        *("fold", "grep", "head", "jq", "ln", "ls", "md5sum", "mkdir", "mv", "nl", "od", "paste", "printf", "pwd"),
        *("readlink", "realpath", "rm", "rmdir", "seq", "sha1sum", "sha256sum", "sha512sum", "sort", "stat", "tac"),
        *("tail", "tee", "touch", "tr", "tree", "truncate", "uniq", "wc"),
    }
)
"""Programs that run no others and no code, if no argument becomes an option. Only of these may arguments differ.

A list of those that do would never be complete: `env`, `find`, `git` with its aliases and pagers, whatever a project
builds.
"""
FOLDERS = ("/bin/", "/usr/bin/")
"""Where they may be named: a file of the conversation with the same name may change."""


def too_much(conditions: Sequence[Condition]) -> str | None:
    """Return why these conditions allow more than they seem to, in a sentence; None if they do not."""
    argv = [each for each in conditions if each.field == "argv" or each.field.startswith("argv.")]
    program = next((each for each in argv if each.field == "argv.0"), None)
    if program is None or program.operator is not Operator.IS or any(each.field == "argv" for each in argv):
        return "The program itself, and how many arguments it has, must stay as they are."
    if any(each.field == "cwd" and each.operator is not Operator.IS for each in conditions):
        return "The folder in which the program runs must stay as it is."
    name = str(program.value)
    name = next((name.removeprefix(folder) for folder in FOLDERS if name.startswith(folder)), name)
    if name not in PLAIN and any(each.operator is not Operator.IS for each in argv):
        return "All arguments of this program must stay as they are: it may run others, or what stands in files."
    return None
