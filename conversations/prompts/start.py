"""Starting, continuing, repeating and stopping turns: called by the pages, the API and triggers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from agents.engine import actors
from agents.engine.ledger import JSON, valid_text
from agents.engine.root import AGENT
from agents.engine.secrets import hide, hide_in
from agents.models import SystemPrompt
from conversations.database.crashpoints import crashpoint
from conversations.database.disk import reporting_full
from conversations.files.uploads import BadFile, PendingUploads, ReusedFiles, Upload
from conversations.files.workspaces import clear
from conversations.ledger import secrets, wakeup
from conversations.ledger.locked import LockedTurn, locked_turn, new_turn
from conversations.models import Conversation, ConversationKind, Origin, Prompt, State, Trigger
from conversations.models.erasure import message_redacted
from conversations.prompts import killswitch, startable
from conversations.prompts.idempotency import set_key, started_before
from conversations.prompts.root_call import PolicyCall, root_call
from conversations.prompts.startable import InvalidInput
from conversations.prompts.system_prompts import hold
from conversations.prompts.titles import title_from
from conversations.usage import quotas

INPUT_MOST = 200_000
"""Maximum length of a message, in characters. Longer text is sent as a file."""
SECRETS_GONE = (
    "This run used a secret, which was deleted when the run ended. Start it again from its form, and enter it again."
)


class TurnInProgress(Exception):
    """A turn of this conversation is running or waiting, so nothing was sent. Stop it, or wait until it ends."""

    def __init__(self, prompt: int | None) -> None:
        super().__init__(self.__doc__)
        self.prompt = prompt


class BadInput(ValueError):
    """The message is not accepted; the exception's text says why and what to do."""


class Deactivated(Exception):
    """The account was deactivated, so nothing was sent. An administrator can activate it again."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def start_conversation(
    owner: User,
    title: str = "",
    system_prompt: SystemPrompt | None = None,
    kind: ConversationKind = ConversationKind.CHAT,
) -> Conversation:
    """Create an empty conversation. `system_prompt`: the one chosen for its agent, if any.

    Raises Deactivated, and NotChoosable for a system prompt that is gone.
    """
    with transaction.atomic():
        owner = _serialize_starts(owner.pk)
        hold(system_prompt)
        conversation = Conversation.objects.create(
            owner=owner, title=hide(title)[:200], system_prompt=system_prompt, kind=kind
        )
        clear(conversation.pk)
    return conversation


def begin_conversation(
    owner: User,
    text: str,
    *,
    tier: str = "normal",
    key: str = "",
    files: Sequence[Upload] = (),
    system_prompt: SystemPrompt | None = None,
) -> Prompt:
    """Start a conversation with its first message, and return that message's prompt.

    The same `key` again returns the first one's. Raises what start_prompt and start_conversation raise.
    """
    new = Conversation(owner=owner, system_prompt=system_prompt)
    return start_prompt(new, owner, text, tier=tier, key=key, files=files)


def start_prompt(
    conversation: Conversation,
    by: User | None,
    text: str | None = None,
    *,
    policy: str = AGENT,
    payload: dict[str, JSON] | None = None,
    tier: str = "normal",
    origin: Origin = Origin.USER,
    visible: bool = True,
    key: str = "",
    together: str = "",
    files: Sequence[Upload] = (),
    from_client: Mapping[str, JSON] = MappingProxyType({}),
    trigger: Trigger | None = None,
    reminder: str | None = None,
) -> Prompt:
    """Start a turn with this message. The turn holds the conversation's slot from now on.

    A conversation that is not stored yet is created with it.
    `by` None: the system starts it, with or without a text (S4); such a prompt is queued until the slot is free. So is
    one over the API with neither text nor files, which the system starts as `by` asked.
    `policy`: what runs instead of the agent, with this `payload` instead of a text. Whether `by` may start it is for
    the caller to ask (`startable.find_for`).
    `key`: the sender's idempotency key; the same key again, from the same person, returns the first prompt.
    `together`: the name of what it is a part of, such as `batch:7`; its turns count as one towards the turns at once.
    `files` are sent with the message, whose text may then be empty.
    `from_client`: what an OpenAI client sent besides (`agents.engine.agent.turn.agent` has `quotes` and `form`).
    `trigger`: what starts it for `by`, with origin TRIGGER; of the agent, which is given no text, with its `reminder`.
    Raises TurnInProgress if a person's message finds the slot taken, BadInput for an empty or overlong text, KeyReused
    for a key that was sent with something else, OverQuota if the owner's turns or tokens are used up, SiteStopped while
    the kill switch is on, and Deactivated for an owner who may no longer use the site; UnknownPolicy for a policy that
    is not installed, and InvalidInput for a payload that it does not accept.
    A turn that the system starts is queued where a message finds the slot taken. It does not count towards the owner's
    turns; OverQuota says that as many of the conversation are queued as may be. If nobody asked for it, which is when
    `by` is None, it is queued while the kill switch is on, too.
    """
    fields: dict[str, Any] = {"tier": tier, "origin": origin, "policy": policy, "visible": visible}
    if from_client:
        fields["from_client"] = hide_in(dict(from_client))
    prompt = Prompt(conversation=conversation, asked_by=by, together=together, trigger=trigger, **fields)
    if policy != AGENT:
        return _start_policy(prompt, payload or {}, key, files)
    if reminder is not None:
        prompt.reminder = hide(valid_text(reminder))
    elif text is not None or files or (by and origin != Origin.API):
        prompt.input = clean_message(text, files)
    chosen = None if conversation.pk else conversation.system_prompt_id  # by whoever begins it
    return _start(prompt, key, ["prompt", conversation.pk, chosen, prompt.input, fields], files)


def _start_policy(prompt: Prompt, payload: dict[str, JSON], key: str, files: Sequence[Upload]) -> Prompt:
    """Start a policy with this payload, or return what the request started before: then the payload is not checked."""
    fields = {"tier": prompt.tier, "origin": prompt.origin, "visible": prompt.visible}
    sent = ["policy", prompt.conversation.pk, prompt.policy, payload, fields]
    set_key(prompt, key, [*sent, *_sent_files(files)])
    if earlier := started_before(prompt):
        return earlier
    try:
        call = PolicyCall.new(startable.find(prompt.policy), payload, prompt.asked_by or prompt.conversation.owner)
    except InvalidInput:
        if earlier := started_before(prompt):  # it was sent twice, and the first has just taken the files
            return earlier
        raise
    prompt.input = call.words
    try:
        return _start(prompt, key, sent, files, call)
    except BadFile as error:
        if not call.files:
            raise
        raise InvalidInput({name: [str(error)] for name in call.files}) from error


def continue_prompt(
    prompt_id: int, by: User, tier: str | None = None, *, origin: Origin = Origin.USER, key: str = ""
) -> Prompt:
    """Continue a turn that failed or was stopped: a new prompt without input, with a budget of its own (R5).

    The model is told to go on, and finds what the turn did in its history. `tier` None: as before.
    Raises Prompt.DoesNotExist if the turn is not this person's, BadInput, and what start_prompt raises; also NotAllowed
    for a policy that they may not start.
    """
    old = Prompt.objects.visible_to(by).select_related("conversation").get(pk=prompt_id)
    prompt = _following(old, by, origin, tier=tier or old.tier, continues=old)
    return _start(prompt, key, ["continue", old.pk, tier], call=PolicyCall.again(old))


def repeat_prompt(prompt_id: int, by: User, *, origin: Origin = Origin.USER, key: str = "") -> Prompt:
    """Repeat a turn that has ended: a new one with the same message, files and tier, which `repeats` the old one.

    The old one stays, and the model reads it: what it did was done. A completed turn can be repeated only while it is
    the conversation's last, because later messages answer it. A turn of a policy has the same payload again.
    Raises Prompt.DoesNotExist if the turn is not this person's, BadInput, and what start_prompt raises; also NotAllowed
    for a policy that they may not start.
    """
    old = Prompt.objects.visible_to(by).select_related("conversation").get(pk=prompt_id)
    call = PolicyCall.again(old)
    if call and call.had_secrets:
        raise BadInput(SECRETS_GONE)
    message = old.input and hide(old.input)  # a secret may have been set up after the message was sent
    prompt = _following(old, by, origin, tier=old.tier, repeats=old, input=message, from_client=old.from_client)
    set_key(prompt, key, ["again", old.pk])
    return _store_once(prompt, ReusedFiles(old), call)


def _following(old: Prompt, by: User, origin: Origin, **fields: Any) -> Prompt:
    """Return a prompt, not stored yet, that runs as an earlier one did. Raises NotAllowed, UnknownPolicy."""
    if old.policy != AGENT:
        startable.find_for(by, old.policy)
    return Prompt(
        conversation=old.conversation, asked_by=by, origin=origin, policy=old.policy, visible=old.visible, **fields
    )


def _start(
    prompt: Prompt, key: str, sent: Sequence[JSON], files: Sequence[Upload] = (), call: PolicyCall | None = None
) -> Prompt:
    """Start this prompt with these files, or return what the request started before: then the files are not kept."""
    set_key(prompt, key, [*sent, *_sent_files(files)])
    given = [*files, *(call.files.values() if call else ())]
    with reporting_full(), PendingUploads(given) as giving:
        started = _store_once(prompt, giving, call)
        giving.keep(started)
    return started


def _sent_files(files: Sequence[Upload]) -> list[JSON]:
    return [[file.name, file.sha256] for file in files]


def _store_once(prompt: Prompt, giving: PendingUploads | ReusedFiles, call: PolicyCall | None) -> Prompt:
    """Store a new prompt, or return the one that the same request started before. Raises KeyReused.

    If the request arrives twice at the same moment, the database decides: a person's keys are unique.
    """
    if earlier := started_before(prompt):
        return earlier
    try:
        return _store(prompt, giving, call)
    except Exception:
        if earlier := started_before(prompt):  # the same request was faster, and has what this one wanted
            return earlier
        raise


def _store(prompt: Prompt, giving: PendingUploads | ReusedFiles, call: PolicyCall | None) -> Prompt:
    """Store a new prompt with its files and its root call, under the conversation's lock.

    A conversation that is not stored yet is created in the same transaction.
    """
    with transaction.atomic():
        conversation = _locked_conversation(prompt)
        if (attended := prompt.attended) and conversation.active_prompt_id:
            raise TurnInProgress(conversation.active_prompt_id)
        if old := prompt.continues or prompt.repeats:
            old.refresh_from_db()
            if not old.ended:
                raise TurnInProgress(old.pk)
            (_check_continued if prompt.continues else _check_repeated)(old)
        if prompt.asked_by_id:
            killswitch.refuse_while_on()
        if attended:
            quotas.check(conversation.owner_id, prompt.together)
        else:
            quotas.check_queue(conversation.pk)
        prompt.number = (conversation.prompts.aggregate(last=Max("number"))["last"] or 0) + 1
        prompt.save(force_insert=True)
        if call and call.secrets:
            secrets.keep(prompt, call.secrets)
        attached = giving.attach(prompt)
        if call and call.files:
            call = call.placed(startable.find(prompt.policy), attached)
            prompt.input = call.words
            prompt.save(update_fields=["input"])
        back = {"archived_at": None} if prompt.origin == Origin.TRIGGER else {}  # into the list, if it was put away
        changes: dict[str, Any] = {"updated_at": timezone.now(), **back}
        if attended:
            # Whoever sends a message has read what came before, even if no script reports it.
            changes |= {"active_prompt": prompt, "archived_at": None, "seen_seq": conversation.seq + 1}
            if not conversation.title and (begun := prompt.input or (attached[0].name if attached else "")):
                changes["title"] = title_from(begun)
        Conversation.objects.filter(pk=conversation.pk).update(**changes)
        new_turn(prompt, conversation).append([root_call(prompt, conversation, attached, prompt.asker, call)])
        crashpoint("before_start")
        transaction.on_commit(wakeup.wake)
    return prompt


def _locked_conversation(prompt: Prompt) -> Conversation:
    """Return the conversation of a prompt that is to be started, locked; create it if it is not stored yet."""
    if not prompt.conversation.pk:
        new = prompt.conversation
        prompt.conversation = start_conversation(new.owner, new.title, new.system_prompt, ConversationKind(new.kind))
        return prompt.conversation
    if prompt.asked_by_id:
        _serialize_starts(prompt.conversation.owner_id)
    return Conversation.objects.select_for_update().get(pk=prompt.conversation_id)


def _serialize_starts(owner: int) -> User:
    """Lock the owner's row until the transaction ends, so that their turns start one by one: each counts the earlier.

    This kind of lock does not block rows that refer to this person. Returns the owner as they are now. Raises
    Deactivated: the request arrived when they could still use the site, and erasing them would miss what it adds.
    """
    locked = User.objects.select_for_update(no_key=True).get(pk=owner)
    if not locked.is_active:
        raise Deactivated
    return locked


def _check_continued(old: Prompt) -> None:
    """Raise BadInput if this turn, which has ended, cannot be continued."""
    if old.state == State.COMPLETED:
        raise BadInput("This turn is complete. Send a message instead.")
    if not startable.goes_on(old.policy):
        raise BadInput("This turn ran a program, which cannot continue where it stopped. Start it again instead.")
    if not old.fence:  # the model knows nothing of it
        raise BadInput("This turn was stopped before it started. Send its message again.")
    if _went_on_after(old):
        raise BadInput("The conversation went on after this turn. Send a message instead.")


def _check_repeated(old: Prompt) -> None:
    """Raise BadInput if this turn, which has ended, cannot be repeated."""
    if old.input is None:
        raise BadInput("This turn has no message to repeat. Send a message instead.")
    if Prompt.objects.filter(message_redacted(), pk=old.pk).exists():
        raise BadInput("The message of this turn was redacted. Write a new one.")
    if old.state == State.COMPLETED and _went_on_after(old):
        raise BadInput("The conversation went on after this turn. Send its message again instead.")


def _went_on_after(old: Prompt) -> bool:
    """Whether the conversation has a later turn, other than turns that were stopped before they started."""
    said_since = Prompt.objects.filter(conversation_id=old.conversation_id, number__gt=old.number)
    return said_since.filter(~Q(fence=0) | ~Q(state=State.CANCELLED)).exists()


def clean_message(text: str | None, files: Sequence[Upload] = ()) -> str:
    """Return the text to store, without the site's secrets. It may be empty if there are files. Raises BadInput."""
    cleaned = hide(valid_text(text or "").replace("\r\n", "\n").strip())
    if not (cleaned or files):
        raise BadInput("Write something first.")
    if len(cleaned) > INPUT_MOST:
        most = f"A message can have at most {INPUT_MOST:,} characters"
        raise BadInput(f"{most}; this one has {len(cleaned):,}. Send it in parts.")
    return cleaned


def cancel_prompt(prompt_id: int, by: User, reason: str = "") -> Prompt:
    """Stop a turn. If no worker holds it, it ends at once; else the worker ends the running calls and then the turn.

    Stopping a turn that has ended changes nothing.
    """
    with locked_turn(prompt_id) as turn:
        if not turn.view.cancelled():
            turn.stop(actors.user(by.pk), hide(reason), held=_held(turn))
        crashpoint("before_cancel")
        transaction.on_commit(wakeup.wake)
    turn.prompt.refresh_from_db()
    return turn.prompt


def _held(turn: LockedTurn) -> bool:
    """Whether a worker may be working on it, and will end its running calls."""
    return turn.prompt.state == State.RUNNING and turn.prompt.lease_until > 0
