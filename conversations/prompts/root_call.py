"""The root call: the first step of a turn, with the payload of its policy, and what the site says beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.contrib.auth.models import User
from django.utils import timezone

from agents.engine.interfaces.attached import Attachment
from agents.engine.ledger import JSON, Step, valid_text
from agents.engine.root import AGENT, site_of
from agents.engine.secrets import RunSecrets, hide, hide_in, is_reference
from conversations.files.uploads import Upload
from conversations.ledger.redacted import KeptStep
from conversations.models import Conversation, Prompt
from conversations.models import Step as StepRow
from conversations.prompts import startable, system_prompts
from conversations.prompts.startable import Checked, Startable

SUMMARY_MOST = 2_000
"""Characters kept of a summary."""


@dataclass(frozen=True)
class PolicyCall:
    """What a policy other than the agent is asked. `summary`: what that is in words, if its payload has no text.

    `secrets`: what it was given besides, by field. The payload refers to them. `files`: those that it was given.
    """

    payload: dict[str, JSON]
    summary: str | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: Mapping[str, Upload] = field(default_factory=dict)

    @classmethod
    def new(cls, found: Startable, input: object, user: User) -> PolicyCall:
        """Return the call with this input, without secrets. Raises InvalidInput."""
        return cls._of(found, startable.checked(found, input, user))

    @classmethod
    def _of(cls, found: Startable, accepted: Checked) -> PolicyCall:
        with RunSecrets(accepted.secrets).hidden():
            payload = hide_in(accepted.payload)
            if _text_of(payload):
                return cls(payload, None, accepted.secrets, accepted.files)
            summary = hide(valid_text(found.summary(payload))).strip()
        return cls(payload, summary[:SUMMARY_MOST] or found.title, accepted.secrets, accepted.files)

    def placed(self, found: Startable, attached: Sequence[Attachment]) -> PolicyCall:
        """Return the call with the paths of its files, which are the last ones that were attached."""
        paths = [file.path for file in attached[len(attached) - len(self.files) :]]
        payload = found.placed(self.payload, dict(zip(self.files, paths, strict=True)))
        return self._of(found, Checked(payload, self.secrets, self.files))

    @classmethod
    def again(cls, old: Prompt) -> PolicyCall | None:
        """Return the call of an earlier turn, as it was recorded; None for a turn of the agent.

        Raises UnknownPolicy if its policy is no longer installed.
        """
        if old.policy == AGENT:
            return None
        startable.find(old.policy)
        row = StepRow.objects.of(old).get(path="", type="action_call")
        call = KeptStep.of(row).step()
        return cls(hide_in(call.payload["payload"]), hide_in(site_of(call).get("summary")))

    @property
    def had_secrets(self) -> bool:
        """Whether its payload refers to secrets that went with the turn that it was the call of."""
        return not self.secrets and _refers(self.payload)

    @property
    def words(self) -> str:
        """What people read as the message of the turn."""
        return _text_of(self.payload) or self.summary or ""


def _refers(value: JSON) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return is_reference(value) or any(map(_refers, inside))


def _text_of(payload: dict[str, JSON]) -> str:
    text = payload.get("text")
    return text if isinstance(text, str) and text.strip() else ""


def root_call(
    prompt: Prompt, conversation: Conversation, attached: Sequence[Attachment], by: str, call: PolicyCall | None
) -> Step:
    """Return the first step of this turn. `by` asks for it; `call` None: the agent is asked the prompt's message."""
    site: dict[str, JSON] = {"tier": prompt.tier}
    if attached:
        site["files"] = [file.recorded() for file in attached]
    if system := system_prompts.recorded(conversation, prompt.policy, timezone.now()):
        site["system"] = system
    site |= prompt.from_client
    if prompt.continues_id:
        site["continues"] = prompt.continues_id
    if prompt.repeats_id:
        site["repeats"] = prompt.repeats_id
    if prompt.trigger_id:
        site["trigger"] = prompt.trigger_id
    if prompt.reminder is not None:
        site["reminder"] = prompt.reminder
    asked: dict[str, JSON] = {"policy": prompt.policy, "origin": prompt.origin}
    if call is None:
        return Step(by, "action_call", asked | {"payload": {"text": prompt.input, **site}})
    if call.summary is not None:
        site["summary"] = call.summary
    return Step(by, "action_call", asked | {"payload": call.payload, "site": site})
