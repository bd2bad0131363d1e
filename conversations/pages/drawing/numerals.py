"""Formatting numbers: thousands grouped, as many decimals as their neighbours, and a true minus sign."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from math import floor, log10

DECIMALS_MOST = 6
"""The maximum number of decimals in a column of figures; a finer one is shown by its first digits."""
PLAIN_MOST = 1e15
"""From here on a number has more digits than a float holds."""
SHORT = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "k"))
"""From which size on an axis's ticks are abbreviated, and by which letter; k applies from five digits."""

_MONEY = re.compile(r"[A-Z]{3}|[$€£¥]")
"""A currency code or sign."""


def figures(values: Sequence[float], *, grouped: bool = True, unit: str = "") -> list[str]:
    """Format the numbers of one column with the same number of decimals. Money has two, or none."""
    places = max((decimals(value) for value in values if _is_plain(value)), default=0)
    if places == 1 and _MONEY.fullmatch(unit):
        places = 2
    return [_figure(value, places, grouped) for value in values]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Format the ticks of an axis, which are evenly spaced: short, in one unit, and all different."""
    step, biggest = ticks[1] - ticks[0], max(abs(tick) for tick in ticks)
    if biggest >= PLAIN_MOST or step < 10.0**-DECIMALS_MOST:
        digits = _places(step / 10.0 ** floor(log10(biggest)))
        return [_signed(f"{tick:.{digits}e}" if tick else "0") for tick in ticks]
    unit, letter = next(((unit, letter) for unit, letter in SHORT if biggest >= unit), (1.0, ""))
    unit = 1e3 if letter == "k" else unit
    places = max(decimals(tick / unit) for tick in ticks)
    return [_signed(f"{tick / unit:,.{places}f}{letter if tick else ''}") for tick in ticks]


def _figure(value: float, places: int, grouped: bool) -> str:
    if not _is_plain(value):
        return _signed(f"{value:.6g}")
    return _signed(f"{value:{',' if grouped else ''}.{places}f}")


def _is_plain(value: float) -> bool:
    """Whether the number can be written out in digits."""
    return value == 0 or 10.0**-DECIMALS_MOST <= abs(value) < PLAIN_MOST


def decimals(value: float) -> int:
    """Return how many decimals are shown of this value."""
    return min(DECIMALS_MOST, _places(value))


def _places(value: float) -> int:
    """Return how many decimals the value has, ignoring float noise beyond the twelfth digit."""
    exponent = Decimal(f"{value:.12g}").normalize().as_tuple().exponent
    return max(0, -int(exponent))


def _signed(text: str) -> str:
    """Use a true minus sign, and the shortest form of an exponent: 1e+07 becomes 1e7."""
    return re.sub(r"e([+-])0*", lambda found: f"e{found[1].strip('+')}", text).replace("-", "\N{MINUS SIGN}")
