"""Starting a turn, going on with one, and stopping it: what pages, the API and triggers call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from agents.engine.attached import Attached
from agents.engine.closing import close
from agents.engine.ledger import JSON, Step, valid_text
from agents.models import SystemPrompt
from conversations import wakeup
from conversations.ledger import Turn, locked_turn
from conversations.models import Conversation, Origin, Prompt, State
from conversations.requests import Request
from conversations.titles import titled
from conversations.uploads import Giving, Regiving, Upload
from conversations.workspaces import clear

if TYPE_CHECKING:
    from django.contrib.auth.models import User

INPUT_MOST = 200_000
"""Characters of one message. More is a file."""
STOPPED = "Stopped before it was done."


class TurnInProgress(Exception):
    """A turn of this conversation runs or waits; the message was not taken. Stop it, or wait for its end."""

    def __init__(self, prompt: int | None) -> None:
        super().__init__(self.__doc__)
        self.prompt = prompt


class BadInput(ValueError):
    """What was said cannot be taken; the message says why and what to do."""


def start_conversation(owner: User, title: str = "", system_prompt: SystemPrompt | None = None) -> Conversation:
    """A new, empty conversation. `system_prompt` None: the site's default, as it is when a turn starts."""
    with transaction.atomic():
        conversation = Conversation.objects.create(owner=owner, title=title[:200], system_prompt=system_prompt)
        clear(conversation.pk)
    return conversation


def begin_conversation(
    owner: User, text: str, *, tier: str = "normal", key: str = "", files: Sequence[Upload] = ()
) -> Prompt:
    """A new conversation by its first message. The same `key` again gives the first one's. Raises as start_prompt."""
    text = checked(text, files)
    request = Request.of(owner, key, "conversation", text, tier, *(file.named for file in files))

    def start(giving: Giving) -> Prompt:
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
    KeyReused for a key that was sent with something else.
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
    request = Request.of(by, key, "prompt", conversation.pk, text, {**fields}, *(file.named for file in files))
    new = _new(request, conversation, input=text, **fields)
    return _once(request, lambda giving: _begin(new, giving), files)


def continue_prompt(
    prompt_id: int, by: User, tier: str | None = None, *, origin: Origin = Origin.USER, key: str = ""
) -> Prompt:
    """Go on with a turn that failed or was stopped: a new prompt without input, with a budget of its own (R5).

    The model is told that it is to go on, and reads what the turn came to in its history. `tier` None: as before.
    Raises Prompt.DoesNotExist where the turn is not this person's, TurnInProgress, BadInput, KeyReused.
    """
    old = Prompt.objects.visible_to(by).select_related("conversation").get(pk=prompt_id)
    request = Request.of(by, key, "continue", old.pk, tier)
    more = {"tier": tier or old.tier, "origin": origin, "policy": old.policy, "visible": old.visible}
    new = _new(request, old.conversation, continues=old, **more)
    return _once(request, lambda giving: _begin(new, giving))


def again_prompt(prompt_id: int, by: User, *, origin: Origin = Origin.USER, key: str = "") -> Prompt:
    """Try a turn that failed or was stopped again: a new one with the same message, files and tier. The old one stays.

    Raises Prompt.DoesNotExist where the turn is not this person's, TurnInProgress, BadInput, KeyReused.
    """
    old = Prompt.objects.visible_to(by).select_related("conversation").get(pk=prompt_id)
    request = Request.of(by, key, "again", old.pk)
    more = {"input": old.input, "tier": old.tier, "origin": origin, "policy": old.policy, "visible": old.visible}

    def start() -> Prompt:
        if not old.ended:
            raise TurnInProgress(old.pk)
        if old.state == State.COMPLETED or old.input is None:
            raise BadInput("Only a message whose turn failed or was stopped can be tried again: send it anew.")
        return _begin(_new(request, old.conversation, **more), Regiving(old))

    return request.once(start)


def _once(request: Request, start: Callable[[Giving], Prompt], files: Sequence[Upload] = ()) -> Prompt:
    """What `start` makes of the files, or what it made when this request came first: then these are not kept."""
    with Giving(files) as giving:
        prompt = request.once(lambda: start(giving))
        giving.keep(prompt)
    return prompt


def _new(request: Request, conversation: Conversation, **fields: Any) -> Prompt:
    """A prompt that is not stored yet."""
    named = {"asked_by": request.by, "request_key": request.key, "request_digest": request.digest}
    return Prompt(conversation=conversation, **named, **fields)


def _begin(prompt: Prompt, giving: Giving | Regiving) -> Prompt:
    """Store a new prompt with its files and its root call, under the conversation's lock."""
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update().get(pk=prompt.conversation_id)
        if _attended(prompt) and conversation.active_prompt_id:
            raise TurnInProgress(conversation.active_prompt_id)
        if prompt.continues:
            _check_continued(prompt.continues)
        prompt.number = (conversation.prompts.aggregate(last=Max("number"))["last"] or 0) + 1
        prompt.save(force_insert=True)
        attached = giving.attach(prompt)
        changes: dict[str, Any] = {"updated_at": timezone.now()}
        if _attended(prompt):
            # Who speaks has read what was said: also without a script that says so.
            changes |= {"active_prompt": prompt, "archived_at": None, "seen_seq": conversation.seq + 1}
            if not conversation.title and (begun := prompt.input or (attached[0].name if attached else "")):
                changes["title"] = titled(begun)
        Conversation.objects.filter(pk=conversation.pk).update(**changes)
        with locked_turn(prompt.pk) as turn:
            turn.append([_root_call(prompt, conversation, attached)])
        transaction.on_commit(wakeup.wake)
    return prompt


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
    said_since = Prompt.objects.filter(conversation_id=old.conversation_id, number__gt=old.number)
    if said_since.filter(~Q(fence=0) | ~Q(state=State.CANCELLED)).exists():
        raise BadInput("The conversation went on after this turn: send a message instead.")


def checked(text: str | None, files: Sequence[Upload] = ()) -> str:
    """The text as it is kept; it may be empty where there are files. Raises BadInput."""
    cleaned = valid_text(text or "").replace("\r\n", "\n").strip()
    if not (cleaned or files):
        raise BadInput("Write something first.")
    if len(cleaned) > INPUT_MOST:
        raise BadInput(f"That is {len(cleaned):,} characters; a message takes {INPUT_MOST:,}. Send it in parts.")
    return cleaned


def _root_call(prompt: Prompt, conversation: Conversation, attached: Sequence[Attached]) -> Step:
    payload: dict[str, JSON] = {"text": prompt.input, "tier": prompt.tier}
    if attached:
        payload["files"] = [file.recorded() for file in attached]
    if system := conversation.system_prompt or SystemPrompt.objects.filter(is_default=True).first():
        payload["system"] = system.text
    if prompt.continues_id:
        payload["continues"] = prompt.continues_id
    by = f"user:{prompt.asked_by_id}" if _attended(prompt) else "system"
    return Step(by, "action_call", {"policy": prompt.policy, "payload": payload, "origin": prompt.origin})


def cancel_prompt(prompt_id: int, by: User, reason: str = "") -> Prompt:
    """Stop a turn. Where no worker holds it, it ends at once; else the worker ends what runs and then the turn.

    Stopping a turn that has ended changes nothing.
    """
    with locked_turn(prompt_id) as turn:
        if not turn.prompt.ended and not turn.view.cancelled():
            turn.append([Step(f"user:{by.pk}", "cancel", {"reason": reason})])
            if not _held(turn):
                turn.append(close(turn.view, State.CANCELLED, "cancelled", STOPPED))
        transaction.on_commit(wakeup.wake)
    turn.prompt.refresh_from_db()
    return turn.prompt


def _held(turn: Turn) -> bool:
    """Whether a worker may be at work on it: only then somebody is there to end what runs."""
    return turn.prompt.state == State.RUNNING and turn.prompt.lease_until > 0
