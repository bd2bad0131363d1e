"""Starting a turn, going on with one, and stopping it: what pages, the API and triggers call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from agents.engine import actors
from agents.engine.interfaces.attached import Attachment
from agents.engine.ledger import JSON, Step, valid_text
from agents.engine.secrets import hide
from agents.models import SystemPrompt
from conversations.database.crashpoints import crashpoint
from conversations.database.disk import reporting_full
from conversations.files.uploads import PendingUploads, ReusedFiles, Upload
from conversations.files.workspaces import clear
from conversations.ledger import wakeup
from conversations.ledger.locked import LockedTurn, locked_turn
from conversations.models import Conversation, Origin, Prompt, State
from conversations.models.erasure import message_redacted
from conversations.prompts import killswitch
from conversations.prompts.idempotency import KeyedRequest
from conversations.prompts.stop import stop
from conversations.prompts.titles import titled
from conversations.usage import quotas

INPUT_MOST = 200_000
"""Characters of one message. More is a file."""


class TurnInProgress(Exception):
    """A turn of this conversation runs or waits; the message was not taken. Stop it, or wait for its end."""

    def __init__(self, prompt: int | None) -> None:
        super().__init__(self.__doc__)
        self.prompt = prompt


class BadInput(ValueError):
    """What was said cannot be taken; the message says why and what to do."""


class Deactivated(Exception):
    """This account was deactivated, so nothing was taken. An administrator can activate it again."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def start_conversation(owner: User, title: str = "", system_prompt: SystemPrompt | None = None) -> Conversation:
    """A new, empty conversation. `system_prompt` None: the site's default, as it is when a turn starts.

    Raises Deactivated.
    """
    with transaction.atomic():
        _hold_back_others(owner.pk)
        conversation = Conversation.objects.create(owner=owner, title=hide(title)[:200], system_prompt=system_prompt)
        clear(conversation.pk)
    return conversation


def begin_conversation(
    owner: User, text: str, *, tier: str = "normal", key: str = "", files: Sequence[Upload] = ()
) -> Prompt:
    """A new conversation by its first message. The same `key` again gives the first one's. Raises as start_prompt."""
    text = checked(text, files)
    request = KeyedRequest.of(owner, key, "conversation", text, tier, *(file.identity for file in files))

    def start(giving: PendingUploads) -> Prompt:
        return _begin(_new(request, start_conversation(owner), input=text, tier=tier), giving)

    return _once(request, start, files)


def start_prompt(
    conversation: Conversation,
    by: User | None,
    text: str | None,
    *,
    tier: str = "normal",
    origin: Origin = Origin.USER,
    policy: str = "agent",
    visible: bool = True,
    key: str = "",
    files: Sequence[Upload] = (),
) -> Prompt:
    """Take what was said and wake a worker. The turn holds the conversation's slot from now on.

    `by` None: the system starts it, with or without a text (S4); such a prompt queues until the slot is free.
    `key`: the sender's own name for the request; the same again, from the same person, gives the first one's prompt.
    `files` go with what was said, which may then be empty.
    Raises TurnInProgress where a person's message finds the slot taken, BadInput for an empty or overlong text,
    KeyReused for a key that was sent with something else, OverQuota where the owner's turns or tokens are used up,
    SiteStopped while the kill switch is on, and Deactivated for an owner who may not use the site any more. What the
    system starts queues then, and is not counted.
    """
    if by or text is not None:
        text = checked(text, files)
    return _start(conversation, by, text, key, files, tier=tier, origin=origin, policy=policy, visible=visible)


def start_unsaid(
    conversation: Conversation, by: User, *, tier: str = "normal", visible: bool = True, key: str = ""
) -> Prompt:
    """Have the system start a turn in which nobody says anything (S4), as `by` asked over the API. It queues.

    Raises KeyReused.
    """
    return _start(conversation, by, None, key, (), tier=tier, origin=Origin.API, policy="agent", visible=visible)


def _start(
    conversation: Conversation, by: User | None, text: str | None, key: str, files: Sequence[Upload], **fields: Any
) -> Prompt:
    request = KeyedRequest.of(by, key, "prompt", conversation.pk, text, {**fields}, *(file.identity for file in files))
    new = _new(request, conversation, input=text, **fields)
    return _once(request, lambda giving: _begin(new, giving), files)


def continue_prompt(
    prompt_id: int, by: User, tier: str | None = None, *, origin: Origin = Origin.USER, key: str = ""
) -> Prompt:
    """Go on with a turn that failed or was stopped: a new prompt without input, with a budget of its own (R5).

    The model is told that it is to go on, and reads what the turn came to in its history. `tier` None: as before.
    Raises Prompt.DoesNotExist where the turn is not this person's, BadInput, and otherwise as start_prompt.
    """
    old = Prompt.objects.visible_to(by).select_related("conversation").get(pk=prompt_id)
    request = KeyedRequest.of(by, key, "continue", old.pk, tier)
    more = {"tier": tier or old.tier, "origin": origin, "policy": old.policy, "visible": old.visible}
    new = _new(request, old.conversation, continues=old, **more)
    return _once(request, lambda giving: _begin(new, giving))


def again_prompt(prompt_id: int, by: User, *, origin: Origin = Origin.USER, key: str = "") -> Prompt:
    """Ask a turn that has ended again: a new one with the same message, files and tier, which `repeats` the old one.

    The old one stays, and the model reads it: what was done in it was done. One that completed is asked again only
    while it is the conversation's last: later ones were said in answer to it.
    Raises Prompt.DoesNotExist where the turn is not this person's, BadInput, and otherwise as start_prompt.
    """
    old = Prompt.objects.visible_to(by).select_related("conversation").get(pk=prompt_id)
    request = KeyedRequest.of(by, key, "again", old.pk)
    said = old.input and hide(old.input)  # the secret may be younger than the message
    more = {"input": said, "tier": old.tier, "origin": origin, "policy": old.policy, "visible": old.visible}

    def start() -> Prompt:
        return _begin(_new(request, old.conversation, repeats=old, **more), ReusedFiles(old))

    return request.once(start)


def _once(request: KeyedRequest, start: Callable[[PendingUploads], Prompt], files: Sequence[Upload] = ()) -> Prompt:
    """What `start` makes of the files, or what it made when this request came first: then these are not kept."""
    with reporting_full(), PendingUploads(files) as giving:
        prompt = request.once(lambda: start(giving))
        giving.keep(prompt)
    return prompt


def _new(request: KeyedRequest, conversation: Conversation, **fields: Any) -> Prompt:
    """A prompt that is not stored yet."""
    named = {"asked_by": request.by, "request_key": request.key, "request_digest": request.digest}
    return Prompt(conversation=conversation, **named, **fields)


def _begin(prompt: Prompt, giving: PendingUploads | ReusedFiles) -> Prompt:
    """Store a new prompt with its files and its root call, under the conversation's lock."""
    with transaction.atomic():
        if attended := _attended(prompt):
            _hold_back_others(prompt.conversation.owner_id)
        conversation = Conversation.objects.select_for_update().get(pk=prompt.conversation_id)
        if attended and conversation.active_prompt_id:
            raise TurnInProgress(conversation.active_prompt_id)
        if prompt.continues:
            _check_continued(prompt.continues)
        if prompt.repeats:
            _check_repeated(prompt.repeats)
        if attended:
            killswitch.refuse_while_on()
            quotas.check(conversation.owner_id)
        prompt.number = (conversation.prompts.aggregate(last=Max("number"))["last"] or 0) + 1
        prompt.save(force_insert=True)
        attached = giving.attach(prompt)
        changes: dict[str, Any] = {"updated_at": timezone.now()}
        if attended:
            # Who speaks has read what was said: also without a script that says so.
            changes |= {"active_prompt": prompt, "archived_at": None, "seen_seq": conversation.seq + 1}
            if not conversation.title and (begun := prompt.input or (attached[0].name if attached else "")):
                changes["title"] = titled(begun)
        Conversation.objects.filter(pk=conversation.pk).update(**changes)
        with locked_turn(prompt.pk) as turn:
            turn.append([_root_call(prompt, conversation, attached)])
        crashpoint("before_start")
        transaction.on_commit(wakeup.wake)
    return prompt


def _hold_back_others(owner: int) -> None:
    """Let what this person starts begin one after the other until the transaction ends: each counts those before it.

    The lock that leaves rows which name this person alone. Raises Deactivated: their request came when they might
    still use the site, and whoever erases them would leave what it adds.
    """
    if not User.objects.select_for_update(no_key=True).get(pk=owner).is_active:
        raise Deactivated


def _attended(prompt: Prompt) -> bool:
    """Whether a person asked for it, who is there to be told that another turn runs."""
    return prompt.asked_by_id is not None and (prompt.input is not None or prompt.continues_id is not None)


def _check_continued(old: Prompt) -> None:
    """Raise BadInput where this turn cannot be gone on with."""
    old.refresh_from_db()
    if not old.ended:
        raise TurnInProgress(old.pk)
    if old.state == State.COMPLETED:
        raise BadInput("This turn came to its end: send a message instead.")
    if not old.fence:  # the model knows nothing of it
        raise BadInput("This turn was stopped before it began: send its message again.")
    if _went_on_after(old):
        raise BadInput("The conversation went on after this turn: send a message instead.")


def _check_repeated(old: Prompt) -> None:
    """Raise BadInput where this turn cannot be asked again."""
    old.refresh_from_db()
    if not old.ended:
        raise TurnInProgress(old.pk)
    if old.input is None:
        raise BadInput("Nobody said anything in this turn: send a message instead.")
    if Prompt.objects.filter(message_redacted(), pk=old.pk).exists():
        raise BadInput("The message of this turn was taken out of the record: write it anew.")
    if old.state == State.COMPLETED and _went_on_after(old):
        raise BadInput("The conversation went on after this turn: send its message anew.")


def _went_on_after(old: Prompt) -> bool:
    """Whether a later turn of the conversation came further than to be stopped before it began."""
    said_since = Prompt.objects.filter(conversation_id=old.conversation_id, number__gt=old.number)
    return said_since.filter(~Q(fence=0) | ~Q(state=State.CANCELLED)).exists()


def checked(text: str | None, files: Sequence[Upload] = ()) -> str:
    """The text as it is kept, without the site's secrets; it may be empty where there are files. Raises BadInput."""
    cleaned = hide(valid_text(text or "").replace("\r\n", "\n").strip())
    if not (cleaned or files):
        raise BadInput("Write something first.")
    if len(cleaned) > INPUT_MOST:
        raise BadInput(f"That is {len(cleaned):,} characters; a message takes {INPUT_MOST:,}. Send it in parts.")
    return cleaned


def _root_call(prompt: Prompt, conversation: Conversation, attached: Sequence[Attachment]) -> Step:
    payload: dict[str, JSON] = {"text": prompt.input, "tier": prompt.tier}
    if attached:
        payload["files"] = [file.recorded() for file in attached]
    if system := conversation.system_prompt or SystemPrompt.objects.filter(is_default=True).first():
        payload["system"] = system.text
    if prompt.continues_id:
        payload["continues"] = prompt.continues_id
    if prompt.repeats_id:
        payload["repeats"] = prompt.repeats_id
    by = actors.user(prompt.asked_by_id) if prompt.asked_by_id and _attended(prompt) else "system"
    return Step(by, "action_call", {"policy": prompt.policy, "payload": payload, "origin": prompt.origin})


def cancel_prompt(prompt_id: int, by: User, reason: str = "") -> Prompt:
    """Stop a turn. Where no worker holds it, it ends at once; else the worker ends what runs and then the turn.

    Stopping a turn that has ended changes nothing.
    """
    with locked_turn(prompt_id) as turn:
        if not turn.view.cancelled():
            stop(turn, actors.user(by.pk), hide(reason), held=_held(turn))
        crashpoint("before_cancel")
        transaction.on_commit(wakeup.wake)
    turn.prompt.refresh_from_db()
    return turn.prompt


def _held(turn: LockedTurn) -> bool:
    """Whether a worker may be at work on it: only then somebody is there to end what runs."""
    return turn.prompt.state == State.RUNNING and turn.prompt.lease_until > 0
