"""Axes: from values to positions, and round ticks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, log10

from agents.plugins.show.figures import FIGURE_MOST

TINY = 1 / FIGURE_MOST
"""Anything closer to zero counts as zero: floats end soon after, and dividing by them would fail."""
NOISE = 1e-9
"""Values whose relative difference is smaller are drawn as equal: ticks between them would look the same."""
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Ticks are multiples of these, times a power of ten."""
INTERVALS = 4
"""About how many intervals an axis has: few enough to be calm."""


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`, which is greater."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Return the position of a value along the axis, in percent."""
        return min(100.0, max(0.0, (value - self.low) / (self.high - self.low) * 100))


def axis_of(values: Iterable[float], *, from_zero: bool) -> Scale:
    """Return the axis for these values. It includes zero if asked to, if zero is near, or if all values are equal."""
    plain = [0.0 if abs(value) < TINY else value for value in values]
    low, high = min(plain), max(plain)
    equal = high - low <= NOISE * max(abs(low), abs(high))
    near = 0 <= low <= high / 2 or low / 2 <= high <= 0
    if from_zero or equal or near:
        low, high = min(low, 0.0), max(high, 0.0)
    return Scale(low, high) if high > low else Scale(0.0, 1.0)


def ticks(scale: Scale) -> list[float]:
    """Return round, evenly spaced values, from one at or below the axis's low end to one at or above its high end."""
    least = (scale.high - scale.low) / INTERVALS
    power = 10.0 ** floor(log10(least))
    step = next(nice * power for nice in STEPS if nice * power >= least * (1 - NOISE))
    first, last = floor(scale.low / step + NOISE), ceil(scale.high / step - NOISE)
    return [number * step for number in range(first, last + 1)]
