"""Changes: what became of the files of a component, shown as cards show a change, and as a file to apply elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from agents.engine.outputs.change import Change
from agents.engine.outputs.kinds import Output
from agents.engine.outputs.registry import register_output
from conversations.display.diff import Diff, diff


class Changes(Output):
    """The files that were changed, each as it was and as it is. `left_out`: those that are too large to be compared."""

    files: list[Change] = []
    left_out: list[str] = []

    @cached_property
    def diffs(self) -> list[Diff]:
        """Their changes, line by line."""
        return [diff(change) for change in self.files]

    @property
    def summary(self) -> str:
        """How much was changed, in a few words."""
        if not self.files:
            return "No file was changed."
        added, removed = sum(each.added for each in self.diffs), sum(each.removed for each in self.diffs)
        count = "1 file" if len(self.files) == 1 else f"{len(self.files)} files"
        return f"{count} changed, {added} lines added, {removed} removed."

    @property
    def patch(self) -> str:
        """The changes as a unified diff, for programs such as `patch -p1`."""
        return "".join(map(_patch, self.diffs))


register_output("changes", Changes, template="workflows/changes.html")


def changes_between(before: Mapping[str, str], after: Mapping[str, str], left_out: list[str]) -> Changes:
    """Return the changes between these texts of files, by path. A file that is gone is shown as emptied."""
    paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    found = [Change(path=path, before=before.get(path), after=after.get(path, "")) for path in paths]
    large = [change.path for change in found if change.too_large]
    return Changes(files=[change for change in found if not change.too_large], left_out=sorted({*left_out, *large}))


def _patch(changed: Diff) -> str:
    lines = [f"--- {'/dev/null' if changed.new else f'a/{changed.path}'}", f"+++ b/{changed.path}"]
    for hunk in changed.hunks:
        lines.append(hunk.head)
        for row in hunk.rows:
            lines.append({"add": "+", "del": "-", "same": " "}[row.kind] + row.text)
            if row.unended:
                lines.append("\\ No newline at end of file")
    return "\n".join(lines) + "\n"
