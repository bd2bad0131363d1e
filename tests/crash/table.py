"""What the matrix says of itself."""

from __future__ import annotations

from collections import defaultdict

from tests.crash.matrix import Share, Walked


class Table:
    """The runs of one kind of database, by scenario and point."""

    def __init__(self, kind: str, share: Share) -> None:
        self._kind, self._share = kind, share
        self._rows: dict[tuple[str, str], list[Walked]] = defaultdict(list)

    def add(self, walked: Walked) -> None:
        self._rows[walked.walk.scenario.name, walked.walk.point].append(walked)

    @property
    def failed(self) -> bool:
        """Whether anything did not hold, or nothing was walked."""
        return not self._rows or any(w.violations or not w.reached for w in self._all())

    def text(self, seconds: float) -> str:
        share = f"1 point in {self._share.step}, from number {self._share.offset} on"
        lines = [f"{self._kind}: {share}: {len(self._all())} runs in {seconds:.0f} s"]
        lines.append(f"{'scenario':<10}{'point':<16}{'runs':>5}{'killed':>8}{'whole':>7}{'cards':>7}{'violations':>12}")
        for (scenario, point), row in self._rows.items():
            counts = [
                f"{len(row):>5}{sum(w.reached for w in row):>8}{sum(w.walk.whole for w in row):>7}",
                f"{sum(w.cards for w in row):>7}{sum(len(w.violations) for w in row):>12}",
            ]
            lines.append(f"{scenario:<10}{point:<16}{''.join(counts)}")
        for w in self._all():
            lines += [f"  {w.walk.name} (whole={w.walk.whole}): {violation}" for violation in w.violations]
            if not w.reached:
                lines.append(f"  {w.walk.name}: was never reached")
        return "\n".join(lines) + "\n"

    def _all(self) -> list[Walked]:
        return [walked for row in self._rows.values() for walked in row]
