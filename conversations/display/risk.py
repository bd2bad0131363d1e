"""Risks: what a call can do, in the words of its badge, and whether the badge is red.

Red is for what is not sandboxed, leaves the site or destroys, and for a high risk that nothing lessens. Whether code is
sandboxed is no property of its tool: the facts of each call say it.
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.engine.tools.tool import NOT_SANDBOXED, SANDBOXED, Risk

RISKS: dict[str, str] = {
    Risk.WRITE: "Writes",
    Risk.EXFILTRATION: "Leaves the site",
    Risk.DESTRUCTIVE: "Destructive",
    Risk.HIGH: "High risk",
}
"""Display names of risks; calls that only read have no badge."""

RUNS_CODE = "Runs code"

RISKS_TO_FILTER = {Risk.READ: "Reads", **RISKS, Risk.HIGH: f"{RISKS[Risk.HIGH]}, or runs code"}
"""Names of risks as a tool declares them, for a filter that knows no facts."""


def risk_words(risk: str, facts: Sequence[str] = ()) -> str:
    """Return what a call of this risk, with these facts, can do: "Runs code", or "Reads" if it only reads."""
    if risk == Risk.HIGH and any(fact.startswith(NOT_SANDBOXED) for fact in facts):
        return NOT_SANDBOXED
    if risk == Risk.HIGH and SANDBOXED in facts:
        return RUNS_CODE
    return RISKS.get(risk) or ("Reads" if risk in ("", Risk.READ) else risk)


def is_red(words: str) -> bool:
    """Whether a badge with these words is red; otherwise it is grey."""
    return words not in (RISKS[Risk.WRITE], RUNS_CODE)
