"""The results of the matrix as a table."""

from __future__ import annotations

from collections import defaultdict

from tests.crash.matrix import Share, Walked
from tests.crash.points import TABLE


class Table:
    """The runs of one kind of database, by crash point."""

    def __init__(self, kind: str, share: Share) -> None:
        self._kind, self._share = kind, share
        self._rows: dict[str, list[Walked]] = defaultdict(list)

    def add(self, walked: Walked) -> None:
        self._rows[walked.walk.cp].append(walked)

    @property
    def failed(self) -> bool:
        """Whether anything failed, or nothing was walked."""
        return not self._rows or any(w.violations or not w.reached for w in self._all())

    def text(self, seconds: float) -> str:
        share = f"1 point in {self._share.step}, from number {self._share.offset} on"
        lines = [f"{self._kind}, {self._share.how}: {share}: {len(self._all())} runs in {seconds:.0f} s"]
        lines.append(f"{'':<6}{'':<52}{'points':>7}{'runs':>6}{'hit':>6}{'whole':>7}{'cards':>7}{'violations':>12}")
        lines += [f"{cp:<6}{TABLE[cp].what:<52}{_counts(row)}" for cp, row in sorted(self._rows.items())]
        lines.append(f"{'':<6}{'all':<52}{_counts(self._all())}")
        for w in self._all():
            lines += [f"  {w.walk.name} (whole={w.walk.whole}): {violation}" for violation in w.violations]
            if not w.reached:
                lines.append(f"  {w.walk.name}: was never reached")
        return "\n".join(lines) + "\n"

    def _all(self) -> list[Walked]:
        return [walked for row in self._rows.values() for walked in row]


def _counts(row: list[Walked]) -> str:
    points = {(w.walk.scenario.name, w.walk.point, w.walk.n) for w in row}
    first = f"{len(points):>7}{len(row):>6}{sum(w.reached for w in row):>6}{sum(w.walk.whole for w in row):>7}"
    return f"{first}{sum(w.cards for w in row):>7}{sum(len(w.violations) for w in row):>12}"
