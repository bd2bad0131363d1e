"""The root: the call that begins a turn on a site, with what the site says beside the payload of its policy."""

from __future__ import annotations

from agents.engine.ledger import JSON, Step

WORKFLOW = "workflow:"
"""What the names of the policies of workflows begin with. Of a run, later turns read only what came of it."""
AGENT = "agent"
"""The policy that answers messages. What the site says of its turns stands in its own payload."""


def site_of(call: Step) -> dict[str, JSON]:
    """Return what the site says of the turn that this call begins; nothing for a run without a site.

    `tier`, `system` (the `id` and `version` of the site's system prompt, and its `text`), `files` (attached), `quotes`
    and `form` (of a client, see `conversations.context`), `continues` and `repeats` (another turn), `trigger` (its
    number, if one started the turn) and the `reminder` that it gives an agent, and for a policy whose payload has no
    text the `summary`: what was asked, in words.
    """
    said: dict[str, JSON] = call.payload
    beside: dict[str, JSON] = said["payload"] if said["policy"] == AGENT else said.get("site", {})
    return beside


def words_of(call: Step) -> str | None:
    """Return what was asked in the turn that this call begins: its text, or else its summary.

    None if nobody asked anything: the turn continues another, or the system started it.
    """
    payload, site = call.payload["payload"], site_of(call)
    if call.payload["policy"] != AGENT and "continues" in site:
        return None  # what its payload asks was asked in the turn that it continues
    words = payload.get("text")
    if site is not payload and not (isinstance(words, str) and words.strip()):
        words = site.get("summary")
    return words if isinstance(words, str) else None


def system_of(call: Step) -> dict[str, JSON] | None:
    """Return the site's system prompt in the turn that this call begins; None if its agent has its own."""
    system = site_of(call).get("system")
    return system if isinstance(system, dict) else None
