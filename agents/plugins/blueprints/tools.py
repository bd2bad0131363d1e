"""The tool by which a model proposes a blueprint. It is told to nobody until an administrator enables it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints

from agents.categories import BLUEPRINTS
from agents.engine.errors import ToolError
from agents.engine.outputs.change import Change
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.blueprints.plugin import PROPOSE
from agents.plugins.blueprints.telling import one_line

NAME_MOST, WHEN_MOST, TEXT_MOST, TAGS_MOST, TAG_MOST = 100, 1024, 20_000, 20, 50
TAKEN = "There is a blueprint called {!r} already: propose it by another name, or ask an administrator to change it."

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Line = Annotated[Text, BeforeValidator(lambda given: one_line(given) if isinstance(given, str) else given)]


class Proposal(BaseModel):
    """A blueprint that is proposed."""

    name: Line = Field(max_length=NAME_MOST, description="A short name that says what it is for.")
    when: Line = Field(
        max_length=WHEN_MOST, description="When to use it, in words that people use who need it: it is found by them."
    )
    text: Text = Field(
        max_length=TEXT_MOST,
        description="The recipe, as Markdown: what to do, in which order, and what to look out for. No names or figures"
        " of this one case, and nothing secret: others are told of it.",
    )
    tags: list[Annotated[Line, Field(max_length=TAG_MOST)]] = Field(
        default=[], max_length=TAGS_MOST, description="More words by which it is to be found."
    )


async def _why(call: ToolCall[Proposal]) -> str:
    """Return what the person is asked; if nothing could come of it, that too."""
    if await call.services.look_up(_is_taken, call.input.name, call.key):
        return TAKEN.format(call.input.name)
    return f"Propose the blueprint “{call.input.name}” to the administrators."


def _whole(call: ToolCall[Proposal]) -> Change:
    """Return all that administrators would read, which is also what agents would be told."""
    given = call.input
    tags = f"Tags: {', '.join(given.tags)}\n" if given.tags else ""
    return Change(path=given.name, before=None, after=f"When: {given.when}\n{tags}\n{given.text}\n")


@tool(
    PROPOSE,
    risk=Risk.WRITE,
    approval=_why,
    idempotent=True,
    grantable=False,
    category=BLUEPRINTS,
    title="Propose a blueprint",
    says=lambda asked: f"proposed the blueprint {asked.name}",
    facts=lambda call: ["It is disabled until an administrator enables it."],
    change=_whole,
    undoable="Administrators can change and delete it.",
)
async def propose(call: ToolCall[Proposal]) -> str:
    """Propose a blueprint: a recipe for work like what was done in this conversation, for the agents of this site.

    Only when the person asks for one. An administrator reads it, changes it if need be, and enables it.
    """
    await call.services.look_up(_save, call.input, call.user, call.key)
    return f"The blueprint {call.input.name!r} is proposed. Agents are told of it once an administrator enables it."


def _is_taken(name: str, key: str) -> bool:
    from agents.models import Blueprint

    return Blueprint.objects.filter(name=name).exclude(key=key).exists()


def _save(proposal: Proposal, user: int, key: str) -> None:
    from django.db import IntegrityError, transaction

    from agents.models import Blueprint

    if Blueprint.objects.filter(key=key).exists():
        return  # it was saved before a crash
    try:
        with transaction.atomic():
            Blueprint.objects.create(
                **proposal.model_dump(), enabled=False, proposed=True, proposed_by_id=user, key=key
            )
    except IntegrityError:
        if not Blueprint.objects.filter(key=key).exists():  # another worker has saved it meanwhile
            raise ToolError(TAKEN.format(proposal.name), "taken") from None
