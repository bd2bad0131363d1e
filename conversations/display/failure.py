"""Why a turn failed, in words that a person can act on.

The ledger has the code of a model's failure, and what the server itself said. The words are made here, whenever they
are shown, so that turns of any age are told alike.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Max, Min, Q

from agents.engine.agent.turn import MODEL_ERROR
from agents.engine.outputs.kinds import Output as Entry
from agents.engine.outputs.kinds import TextOutput
from agents.engine.root import AGENT
from conversations.accounts.names import administrators, display_name
from conversations.display.when import span
from conversations.models import Prompt, State, Step

UNEXPLAINED = "It ended before it was finished."
"""What is said of a turn that failed if its own record does not say why."""
NAMED_MOST = 3
"""How many administrators are named at most."""
LATER = "Try again in a few minutes."
FALLBACK = "A second model can be asked when this one does not answer."


class Remedy(Enum):
    """What it takes for the same request to succeed."""

    TIME = "time"
    """It may succeed later, by itself."""
    REPAIR = "repair"
    """An administrator has to change something first."""
    NONE = "none"
    """It would fail again."""


class FailureKind(NamedTuple):
    """One kind of failure of a model: the words for it.

    `happened` is what happened, `advice` what the reader can do, and `repair` what an administrator can do, with these
    `settings`.
    """

    happened: str
    advice: str = ""
    repair: str = ""
    settings: tuple[str, ...] = ()
    remedy: Remedy = Remedy.REPAIR


KINDS = {
    "key_refused": FailureKind(
        "The model server does not accept this site's key.",
        repair="The key may be wrong or expired, or it may not be allowed to use this model.",
        settings=("OPENAI_API_KEY",),
    ),
    "insufficient_quota": FailureKind(
        "This site has used up its budget at the model provider.",
        repair="Check the plan, the budget and the bill of the account that the key belongs to.",
        settings=("OPENAI_API_KEY",),
    ),
    "rate_limited": FailureKind(
        "The model server gets more requests from this site than it allows.",
        LATER,
        f"Check the rate limits of the account. {FALLBACK}",
        ("AGENTSITE_MODEL_FALLBACK",),
        remedy=Remedy.TIME,
    ),
    "server_error": FailureKind(
        "The model server is overloaded or not working.",
        LATER,
        f"Check the status page of the provider, or the log of the model server. {FALLBACK}",
        ("AGENTSITE_MODEL_FALLBACK",),
        remedy=Remedy.TIME,
    ),
    "unreachable": FailureKind(
        "The model server could not be reached.",
        LATER,
        "Check that it is running, and that this machine can reach its address.",
        ("OPENAI_BASE_URL",),
        remedy=Remedy.TIME,
    ),
    "timeout": FailureKind(
        "The model server did not answer in time.",
        LATER,
        f"Check the load of the model server. {FALLBACK}",
        ("AGENTSITE_MODEL_FALLBACK",),
        remedy=Remedy.TIME,
    ),
    "stream_broken": FailureKind(
        "The model's answer broke off before it was complete.",
        LATER,
        "Check the log of the model server, and of what stands between it and this site, such as a proxy.",
        ("OPENAI_BASE_URL",),
        remedy=Remedy.TIME,
    ),
    "empty_answer": FailureKind(
        "The model gave an empty answer, even when asked again.",
        "Ask again, or choose the other model.",
        "This happens with models that cannot call tools in the way that this site expects.",
        ("AGENTSITE_MODEL_API",),
        remedy=Remedy.TIME,
    ),
    "incomplete": FailureKind(
        "The model's answer was cut off before it said anything.",
        "Ask for less at once, or choose the other model.",
        "The model server limits the length of an answer, or filters it.",
        remedy=Remedy.TIME,
    ),
    "context_overflow": FailureKind(
        "This conversation has become too long for the model.",
        "Start a new conversation, and tell the agent what it needs to know. This one stays as it is.",
        "If it happens often, let the site send less of earlier turns, or fewer tools.",
        ("AGENTSITE_HISTORY_TOKENS", "AGENTSITE_RESULT_CHARACTERS", "AGENTSITE_TOOL_TOKENS"),
        remedy=Remedy.NONE,
    ),
    "unknown_model": FailureKind(
        "The model server does not have the model that this site asks for.",
        "The other model may work.",
        "Check the names of the models, and whether the key may use them.",
        ("AGENTSITE_MODEL_NORMAL", "AGENTSITE_MODEL_HIGH"),
    ),
    "unknown_address": FailureKind(
        "There is no model at the address that is set up.",
        repair="Check the address, which usually ends in /v1, and whether the server has this API.",
        settings=("OPENAI_BASE_URL", "AGENTSITE_MODEL_API"),
    ),
    "refused": FailureKind(
        "The model server refused this request.",
        "It may help to ask in other words, or in a new conversation.",
        "What the server said tells why. If it does not understand what this site sends, try another API.",
        ("AGENTSITE_MODEL_API",),
    ),
}
"""The codes of `agents.providers.common.failures`, with their words."""

OTHER = FailureKind("The model did not answer.", LATER, remedy=Remedy.TIME)
"""The words for a code that is not in the table: a provider of an app may have codes of its own."""


@dataclass(frozen=True)
class Failure:
    """Why the model of one turn failed, for one reader.

    `happened` is what happened, and how often the model was asked; `advice` what to do about it. `settings`: where an
    administrator sets it. `said`: the server's own words. `anew`: a new conversation helps.
    """

    code: str
    happened: str
    advice: str
    said: str
    settings: tuple[str, ...] = ()
    remedy: Remedy = Remedy.TIME
    anew: bool = False

    @property
    def in_one_line(self) -> str:
        """What happened, what to do, and where."""
        return " ".join(filter(None, (self.happened, self.advice, self.where)))

    @property
    def where(self) -> str:
        """Where an administrator sets it; "" for everybody else."""
        names = ", ".join(self.settings)
        return f"{'Settings' if len(self.settings) > 1 else 'Setting'}: {names}." if names else ""


def failures_of(prompts: Iterable[Prompt], reader: User | AnonymousUser) -> dict[int, Failure]:
    """Return the failures of those of these turns that failed because of their model, as this reader sees them."""
    failed = [prompt for prompt in prompts if prompt.state == State.FAILED and prompt.stop_reason in BY_MODEL]
    if not failed:
        return {}
    ends = _last_results(failed)
    starts = Step.objects.of(*failed).filter(type="action_start").order_by()
    asked = {
        (row["prompt"], row["path"]): (row["times"], row["first"])
        for row in starts.values("prompt", "path").annotate(times=Count("pk"), first=Min("time"))
    }
    found: dict[int, Failure] = {}
    repairers = _administrators(reader)
    for prompt in failed:
        answer, root = ends.get((prompt.pk, True)), ends.get((prompt.pk, False))
        if answer is None or not answer.content.get("error"):
            continue
        code = str(answer.content.get("code", ""))
        if prompt.stop_reason != MODEL_ERROR and (root is None or root.content.get("code") != code):
            continue  # a program went on without that answer, and failed for another reason
        times = asked.get((prompt.pk, answer.path), (1, answer.time))
        found[prompt.pk] = _failure(prompt, code, answer.content, _asked(*times, answer.time), repairers)
    return found


BY_MODEL = (MODEL_ERROR, "error")
"""The stop reasons of turns that a model may have failed: an agent's, and that of a program that asks agents."""


def _last_results(prompts: Collection[Prompt]) -> dict[tuple[int, bool], Step]:
    """Return the last result of a model in each turn, as `(id, True)`, and the turn's own result, as `(id, False)`."""
    results = Step.objects.of(*prompts).filter(Q(actor="model") | Q(path=""), type="action_result").order_by()
    last = results.values("prompt", "actor").annotate(last=Max("seq")).values("last")
    return {
        (step.prompt_id, step.actor == "model" and step.path != ""): step
        for step in results.filter(seq__in=last).order_by("seq")
    }


def _asked(times: int, first: datetime, last: datetime) -> str:
    """Return how often the model was asked, and for how long; "" for once."""
    return f"It was asked {times} times in {span((last - first).total_seconds())}." if times > 1 else ""


def _administrators(reader: User | AnonymousUser) -> str | None:
    """Return who can repair it, in words; None if the reader can."""
    if reader.is_active and reader.is_superuser:
        return None
    names = [display_name(user) for user in administrators()[:NAMED_MOST]]
    return f"an administrator ({' or '.join(names)})" if names else "an administrator"


def _failure(prompt: Prompt, code: str, payload: Mapping[str, Any], asked: str, repairers: str | None) -> Failure:
    kind, too_long = KINDS.get(code, OTHER), code == "context_overflow"
    if too_long and prompt.policy != AGENT:  # its form opens with the same input, which can be made shorter
        kind = kind._replace(
            happened="This has become too long for the model.", advice="Run it with less input.", remedy=Remedy.REPAIR
        )
    advice = kind.advice
    wait = payload.get("wait_seconds")
    if isinstance(wait, int | float):
        advice = f"The server asks to wait {_whole_minutes(wait)}. Try again after that."
    if repairers is None:
        advice = f"{advice} {kind.repair}"
    elif kind.remedy is Remedy.TIME:
        advice = f"{advice} If it keeps happening, tell {repairers}."
    elif not too_long:
        advice = f"{advice} Ask {repairers} to fix this, and then try again."
    return Failure(
        code,
        f"{kind.happened} {asked}".strip(),
        advice.strip(),
        str(payload.get("message", "")),
        settings=kind.settings if repairers is None else (),
        remedy=kind.remedy,
        anew=too_long and prompt.policy == AGENT,
    )


def _whole_minutes(seconds: float) -> str:
    """Return a time to wait, rounded up: who comes back after it comes late enough."""
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{math.ceil(minutes / 60)} h"


def site_notice(entries: Iterable[Entry]) -> TextOutput | None:
    """Return what the site itself last said in a turn: why it failed, unless its model did."""
    found = None
    for entry in entries:
        if isinstance(entry, TextOutput) and entry.role_hint == "system":
            found = entry
    return found
