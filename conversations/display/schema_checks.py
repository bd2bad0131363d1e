"""What a schema demands of a value, in words for the person who typed it. Only what stands in plain figures there.

It judges sooner and in plainer words than whoever accepts the input, who judges it all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agents.engine import complaints
from agents.engine.ledger import JSON


def complaint(schema: Mapping[str, Any], value: JSON) -> str | None:
    """Return the first thing that this schema demands and the value lacks, as a sentence; None if there is none."""
    return next(_complaints(schema, value), None)


def bounds_of(schema: Mapping[str, Any]) -> str:
    """Return the range of a number in words, such as "From 0 to 365."; "" if it has none."""
    least, most = _number(schema, "minimum"), _number(schema, "maximum")
    above, below = _number(schema, "exclusiveMinimum"), _number(schema, "exclusiveMaximum")
    said = " and ".join(
        text
        for text in (
            f"{complaints.figure(least)} or more" if least is not None and most is None else "",
            f"{complaints.figure(most)} or less" if most is not None and least is None else "",
            f"more than {complaints.figure(above)}" if above is not None else "",
            f"less than {complaints.figure(below)}" if below is not None else "",
        )
        if text
    )
    if least is not None and most is not None:
        said = f"from {complaints.figure(least)} to {complaints.figure(most)}"
    step = _number(schema, "multipleOf")
    steps = f"in steps of {complaints.figure(step)}" if step not in (None, 1) else ""
    words = ", ".join(text for text in (said, steps) if text)
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def _complaints(schema: Mapping[str, Any], value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield from _of_text(schema, value)
    elif isinstance(value, list):
        yield from _of_list(schema, value)
    elif isinstance(value, int | float) and not isinstance(value, bool) and not _within(schema, value):
        bounds = bounds_of(schema)
        that = "" if bounds.startswith(("From", "In")) else "that is "
        yield f"Enter a number {that}{bounds[:1].lower()}{bounds[1:]}"


def _of_text(schema: Mapping[str, Any], text: str) -> Iterator[str]:
    least, most = _number(schema, "minLength"), _number(schema, "maxLength")
    if least and len(text) < least:
        yield f"{complaints.characters(False, int(least), len(text))}."
    if most is not None and len(text) > most:
        yield f"{complaints.characters(True, int(most), len(text))}."


def _of_list(schema: Mapping[str, Any], items: list[JSON]) -> Iterator[str]:
    least, most = _number(schema, "minItems"), _number(schema, "maxItems")
    if least and len(items) < least:
        yield f"{complaints.items(False, int(least), len(items))}."
    if most is not None and len(items) > most:
        yield f"{complaints.items(True, int(most), len(items))}."


def _within(schema: Mapping[str, Any], value: float) -> bool:
    least, most = _number(schema, "minimum"), _number(schema, "maximum")
    above, below = _number(schema, "exclusiveMinimum"), _number(schema, "exclusiveMaximum")
    step = _number(schema, "multipleOf")
    return (
        (least is None or value >= least)
        and (most is None or value <= most)
        and (above is None or value > above)
        and (below is None or value < below)
        and not (step and isinstance(value, int) and isinstance(step, int) and value % step)
    )


def _number(schema: Mapping[str, Any], key: str) -> float | None:
    found = schema.get(key)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None
