"""The tools by which an agent saves, finds and forgets memories of the person it works for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field, StringConstraints

from agents.categories import MEMORY
from agents.engine.apart import on_one_line
from agents.engine.errors import ToolError
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.memory.plugin import FORGET, SAVE, SEARCH

if TYPE_CHECKING:
    from agents.models import Memory

TEXT_MOST = 2_000
"""Characters of one memory; that of `agents.models.Memory`, which tools are declared without."""
LISTED_MOST = 20
"""Memories that one search gives."""
IS_OFF = "Memory is switched off. The person can switch it on in their account."
HAS_NONE = "This site has no memory: whoever runs it has switched it off."


class NewMemory(BaseModel):
    """The input of `memory.save`."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        max_length=TEXT_MOST,
        description="One thing to remember, in a whole sentence that can be understood without this conversation.",
    )
    pinned: bool = Field(  # always said, so that a grant can be for those that are not pinned
        description="Whether you are told of it whatever a conversation is about. Pin only what the person asks you to."
    )


@tool(
    SAVE,
    risk=Risk.WRITE,
    idempotent=True,
    category=MEMORY,
    title="Remember",
    says=lambda asked: "remembered something",
    justify=lambda asked: f"Remember in {'all' if asked.pinned else 'later'} conversations: {_line(asked.text)}",
    undoable="You can change it and have it forgotten under Memory in your account.",
)
async def save(call: ToolCall[NewMemory]) -> str:
    """Remember something of the person for later conversations: what they ask you to, or what will be of use again.

    You are told by yourself of what fits a message, so save no more than what is true for long. Save no passwords, and
    nothing about others that they would not want kept.
    """
    return await call.services.look_up(_save, call.user, call.input, call.services.prompt, call.key)


def _refuse_if_off(user: int) -> None:
    from agents.plugins.memory import keeping  # tools are declared without Django; this runs only on a site

    if not keeping.is_on(user):
        raise ToolError(IS_OFF if keeping.is_offered() else HAS_NONE, code="refused")


def _save(user: int, asked: NewMemory, prompt: int, key: str) -> str:
    from agents.plugins.memory import keeping

    _refuse_if_off(user)
    try:
        saved = keeping.save(user, asked.text, pinned=asked.pinned, prompt=prompt, key=key)
    except keeping.CannotKeep as error:
        raise ToolError(f"Nothing was saved. {error}", code="refused") from error
    number = saved.memory.pk
    if saved.new or saved.memory.key == key:
        return f"Memory {number} is saved.{keeping.remark(saved.memory)}"
    return f"Known already, as memory {number}.{' It is pinned now.' if saved.pinned_now else ''}"


class Sought(BaseModel):
    """The input of `memory.search`."""

    words: str = Field(
        default="", max_length=1_000, description="What they are about. Empty: the pinned and newest ones."
    )


@tool(
    SEARCH,
    risk=Risk.READ,
    category=MEMORY,
    title="Search the memory",
    says=lambda asked: f"searched the memory: {_line(asked.words)}" if asked.words.strip() else "looked at the memory",
)
async def search(call: ToolCall[Sought]) -> str:
    """Find what you remember of the person, by words. What fits the last message you are told by yourself."""
    return await call.services.look_up(_search, call.user, call.input.words)


def _search(user: int, words: str) -> str:
    from agents.plugins.memory import keeping

    _refuse_if_off(user)
    if not words.strip():
        found = list(keeping.of_person(user)[:LISTED_MOST])
        return "\n".join(map(_described, found)) or "Nothing is remembered yet."
    found = keeping.find(user, words, LISTED_MOST)
    return "\n".join(map(_described, found)) or "Nothing is remembered about that. Other words may find more."


class Which(BaseModel):
    """The input of `memory.forget`."""

    id: int = Field(ge=1, le=2**62, description="The number of the memory, as you were told it.")


async def _what_goes(call: ToolCall[Which]) -> bool | str:
    """Return what the person is asked: a number says nothing of what they would lose. Of nothing, nobody is asked."""
    found = await call.services.look_up(_text_of, call.user, call.input.id)
    return found is not None and _question(call.input.id) + found


def _question(id: int) -> str:
    return f"Forget memory {id}: "


def _text_of(user: int, id: int) -> str | None:
    """Return what a memory says; None if there is none, or memory is off."""
    from agents.plugins.memory import keeping

    found = keeping.of_person(user).filter(pk=id).first() if keeping.is_on(user) else None
    return found.text if found else None


@tool(
    FORGET,
    risk=Risk.WRITE,
    approval=_what_goes,
    idempotent=True,
    grantable=False,
    category=MEMORY,
    title="Forget",
    says=lambda asked: f"forgot memory {asked.id}",
    justify=lambda asked: f"Forget memory {asked.id}.",
    undoable="A forgotten memory is gone. Conversations in which it was saved, told or mentioned still have it.",
)
async def forget(call: ToolCall[Which]) -> str:
    """Forget a memory of the person, for good: because they ask you to, or because it is not true any more."""
    shown = call.reason.removeprefix(_question(call.input.id))
    return await call.services.look_up(_forget, call.user, call.input.id, shown, call.attempt)


def _forget(user: int, id: int, shown: str, attempt: int) -> str:
    from agents.plugins.memory import keeping

    _refuse_if_off(user)
    try:
        if keeping.forget(user, id, shown):
            return f"Memory {id} is forgotten."
    except keeping.HasChanged as error:
        why = f"Memory {id} says something else by now. Nothing was forgotten: look at it, and ask again."
        raise ToolError(why, code="changed_since") from error
    if attempt == 1 or not shown:
        raise ToolError(f"There is no memory {id}. Nothing was forgotten.", code="not_found")
    return f"Memory {id} is forgotten."  # by an attempt that was cut off before its result was recorded


def _described(memory: Memory) -> str:
    return f"{memory.pk}: {on_one_line(memory.text)}{' (pinned)' if memory.pinned else ''}"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:119].rstrip()}\N{HORIZONTAL ELLIPSIS}"
