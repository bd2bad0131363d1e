"""Numbers as people read them: grouped by thousands, with as many decimals as their neighbours, and a true minus."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from math import floor, log10

DECIMALS_MOST = 6
"""Decimals that figures side by side are given; a finer one stands by its first digits."""
PLAIN_MOST = 1e15
"""From here on a number has more digits than a float knows."""
SHORT = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "k"))
"""From which size on the marks of an axis are shortened, and by what letter; k begins where four digits end."""

_MONEY = re.compile(r"[A-Z]{3}|[$€£¥]")
"""The code of a currency, or its sign."""


def figures(values: Sequence[float], *, grouped: bool = True, unit: str = "") -> list[str]:
    """Numbers that stand below each other, with the same number of decimals; money that has any has two."""
    places = max((decimals(value) for value in values if _is_plain(value)), default=0)
    if places == 1 and _MONEY.fullmatch(unit):
        places = 2
    return [_figure(value, places, grouped) for value in values]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """The marks of an axis, evenly apart: short, all of one unit, and none like another."""
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
    """Whether it can be written out."""
    return value == 0 or 10.0**-DECIMALS_MOST <= abs(value) < PLAIN_MOST


def decimals(value: float) -> int:
    """How many decimals a figure is given for this value."""
    return min(DECIMALS_MOST, _places(value))


def _places(value: float) -> int:
    """How many decimals it has, but for the noise of floats beyond its twelfth digit."""
    exponent = Decimal(f"{value:.12g}").normalize().as_tuple().exponent
    return max(0, -int(exponent))


def _signed(text: str) -> str:
    """With a true minus; an exponent is said in as few signs as it has: 1e+07 is 1e7."""
    return re.sub(r"e([+-])0*", lambda found: f"e{found[1].strip('+')}", text).replace("-", "\N{MINUS SIGN}")
