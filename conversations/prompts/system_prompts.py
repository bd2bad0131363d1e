"""Which system prompt a turn has, and its text: variables are filled in when the turn starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.dateformat import format

from agents import discovery
from agents.engine.ledger import JSON, valid_text
from agents.engine.root import AGENT
from agents.models import AgentPrompt, SystemPrompt, SystemPromptVersion
from conversations.accounts.names import display_name
from conversations.accounts.zones import zone_of
from conversations.models import Conversation
from conversations.prompts.startable import goes_on

USER_MOST = 100
"""Characters of a person's name in a system prompt."""


class NotChoosable(ValueError):
    """A system prompt that does not exist, or is retired. The message says what to do."""


def hold(chosen: SystemPrompt | None) -> None:
    """Keep the chosen one from being deleted until the transaction ends. Raises NotChoosable if it is gone already."""
    if chosen and not chosen.hold():
        raise NotChoosable("This system prompt was deleted in the meantime: choose another one.")


def _user(user: User, now: datetime) -> str:
    """The name of a person, in one line: people choose it themselves. That of the account, if nothing can be seen."""
    return _line(display_name(user)) or _line(user.get_username())


def _line(name: str) -> str:
    seen = "".join(letter if letter.isprintable() else " " for letter in valid_text(name))
    return " ".join(seen.split())[:USER_MOST]


def _date(user: User, now: datetime) -> str:
    return format(now.astimezone(zone_of(user)), "l, j F Y")


def _site(user: User, now: datetime) -> str:
    return urlsplit(settings.AGENTSITE_URL).netloc


VARIABLES: Mapping[str, Callable[[User, datetime], str]] = {"user": _user, "date": _date, "site": _site}
"""What may stand in braces in a system prompt, and what takes its place. There are no others."""
_KNOWN = re.compile(rf"\{{({'|'.join(VARIABLES)})\}}")


def rendered(version: SystemPromptVersion, user: User, now: datetime) -> str:
    """Return the text of a version for a turn of this person that starts `now`.

    All variables are replaced at once, so what takes the place of one is never replaced again. Anything else in braces
    stays as it is written.
    """
    return _KNOWN.sub(lambda found: VARIABLES[found[1]](user, now), version.text)


def unknown_variables(text: str) -> list[str]:
    """Return the names in braces that look like variables and are none, in the order in which they occur."""
    return [name for name in dict.fromkeys(re.findall(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", text)) if name not in VARIABLES]


def choosable() -> QuerySet[SystemPrompt]:
    """Return the system prompts that can be chosen: those that are not retired."""
    return SystemPrompt.objects.filter(retired=False)


def find_choosable(named: int | str) -> SystemPrompt:
    """Return the system prompt with this id or name. Raises NotChoosable."""
    found = SystemPrompt.objects.filter(**{"pk" if isinstance(named, int) else "name": named}).first()
    if found is None:
        raise NotChoosable("There is no system prompt with this id or name.")
    if found.retired:
        raise NotChoosable("This system prompt is retired: choose another one.")
    return found


def agents() -> list[tuple[str, str]]:
    """Return the agents that a system prompt can be chosen for: the names and titles of their policies."""
    policies = [*discovery.installed().policies, *discovery.added()]
    own = sorted((each.name, each.title) for each in policies if each.goes_on)
    return [(AGENT, "The agent of conversations"), *own]


def recorded(conversation: Conversation, policy: str, now: datetime) -> dict[str, JSON] | None:
    """Return what the root call of a turn that starts `now` says of its system prompt, and mark that as used.

    None if the agent has its own, or if the policy is no agent.
    """
    for prompt in _prompts(conversation.system_prompt, policy):
        if prompt.mark_used():
            version = prompt.latest()
            text = rendered(version, conversation.owner, now)
            return {"id": prompt.pk, "version": version.number, "text": text}
    return None


def without_choice(policy: str = AGENT) -> SystemPrompt | None:
    """Return the system prompt of an agent in conversations that chose none; None if the agent has its own."""
    return next(_prompts(None, policy), None)


def _prompts(chosen: SystemPrompt | None, policy: str) -> Iterator[SystemPrompt]:
    """Yield the system prompts that apply to a turn, the most specific first; none where the agent's own goes before.

    A conversation's choice is about the agent that answers its messages. Any other agent was written for one task, and
    keeps the text that an administrator chose for it, or its author wrote.
    """
    if not goes_on(policy):
        return
    if chosen and policy == AGENT:
        yield chosen
    if row := AgentPrompt.objects.select_related("prompt").filter(policy=policy).first():
        yield row.prompt
    if policy != AGENT and (found := discovery.installed_policy(policy)) and found.prompt:
        return
    if default := SystemPrompt.objects.filter(is_default=True).first():
        yield default
