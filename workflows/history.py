"""The history: a person's runs of all workflows, however they were started, which can be filtered and searched.

Pages, the API and the command read this one. A run is in the history of the person who asked for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.engine.root import AGENT, WORKFLOW
from agents.engine.tools.tool import NAME
from conversations.database.sql import Literal
from conversations.display.search import all_words, contains, in_output, words_of
from conversations.models import Origin, Output, Prompt
from workflows.models import RunStar

STARTED_BY = {
    "site": (Origin.WORKFLOW, Origin.USER),
    "api": (Origin.API,),
    "command": (Origin.COMMAND,),
    "trigger": (Origin.TRIGGER,),
}
"""How a run was started, as filters name it: on the site, by the API, by the command line, by a trigger."""

LAST = """
WITH RECURSIVE ran(policy) AS (
    SELECT (SELECT policy FROM conversations_prompt WHERE asked_by_id = %(user)s AND NOT (policy = 'agent')
            ORDER BY policy LIMIT 1)
    UNION ALL
    SELECT (SELECT policy FROM conversations_prompt WHERE asked_by_id = %(user)s AND NOT (policy = 'agent')
            AND policy > ran.policy ORDER BY policy LIMIT 1)
    FROM ran WHERE ran.policy IS NOT NULL
)
SELECT policy, (SELECT id FROM conversations_prompt WHERE asked_by_id = %(user)s AND NOT (policy = 'agent')
                AND policy = ran.policy ORDER BY id DESC LIMIT 1)
FROM ran WHERE policy IS NOT NULL
"""
"""Each policy but the agent that a person started, with their last turn of it: one look-up in the index for each."""


@dataclass(frozen=True)
class RunFilter:
    """Which runs are asked for; an empty field asks for all.

    `workflow`: the name of one. `state`: of `State`. `started_by`: of STARTED_BY. `starred`: only those with a star.
    `search`: words that all occur in the line of the run, or all in what came of it.
    """

    workflow: str = ""
    state: str = ""
    started_by: str = ""
    starred: bool = False
    search: str = ""


def runs_of(user: User, chosen: RunFilter | None = None) -> QuerySet[Prompt]:
    """Return the runs of this person, the newest first."""
    chosen = chosen or RunFilter()
    runs = Prompt.objects.visible_to(user).filter(asked_by=user).exclude(policy=Literal(AGENT)).order_by("-pk")
    if chosen.workflow and not re.fullmatch(NAME, chosen.workflow):
        return runs.none()
    if chosen.workflow:
        runs = runs.filter(policy=f"{WORKFLOW}{chosen.workflow}")
    else:
        runs = runs.filter(policy__startswith=WORKFLOW)
    if chosen.state:
        runs = runs.filter(state=chosen.state)
    if chosen.started_by:
        runs = runs.filter(origin__in=STARTED_BY[chosen.started_by])
    if chosen.starred:
        runs = runs.filter(pk__in=RunStar.objects.filter(user=user).values("prompt"))
    if words := words_of(chosen.search):
        runs = runs.filter(_in_line(words) | _in_result(words))
    return runs


def started_by(run: Prompt) -> str:
    """Return how a run was started, in a word of STARTED_BY; its origin, if none of them covers it."""
    return next((name for name, origins in STARTED_BY.items() if run.origin in origins), run.origin)


def last_runs(user: User) -> dict[str, int]:
    """Return the id of this person's last run of each workflow that they ran, by its name."""
    with connection.cursor() as cursor:
        cursor.execute(LAST, {"user": user.pk})
        found = dict(cursor.fetchall())
    return {policy.removeprefix(WORKFLOW): pk for policy, pk in found.items() if policy.startswith(WORKFLOW)}


def _in_line(words: list[str]) -> Q:
    return all_words(words, partial(contains, "input"))


def _in_result(words: list[str]) -> Exists:
    ended = Output.objects.filter(conversation=OuterRef("conversation"), prompt=OuterRef("pk"), path="")
    kinds = Q(type="result") & in_output(words, "output", "parent")
    texts = Q(type="text") & in_output(words, "text", "type")
    return Exists(ended.filter(kinds | texts))
