"""The slot: a conversation has one turn at a time."""

import pytest
from django.contrib.auth.models import User

from conversations.ledger.claims import claim, claimable
from conversations.models import Conversation, Prompt, State
from conversations.models import Step as Row
from conversations.prompts.start import BadInput, TurnInProgress, start_conversation, start_prompt
from conversations.verification.stored import verify
from tests.conversations.recorded import LEASE, Site, at_once
from tests.engine.support import says


@pytest.mark.django_db(transaction=True)
def test_one_of_ten_messages_at_once_is_taken(ann: User) -> None:
    """T-32, T-33: one of ten parallel posts gets the slot, the others hear of the turn that has it."""
    conversation = start_conversation(ann)
    came_to = at_once(*[lambda n=n: start_prompt(conversation, ann, f"Message {n}") for n in range(10)])
    taken = [one for one in came_to if isinstance(one, Prompt)]
    assert len(taken) == 1
    assert [one.prompt for one in came_to if isinstance(one, TurnInProgress)] == [taken[0].pk] * 9
    conversation.refresh_from_db()
    assert (conversation.active_prompt, conversation.seq) == (taken[0], 1)
    assert conversation.title == taken[0].input


@pytest.mark.django_db
def test_a_message_waits_for_no_slot_and_changes_nothing(ann: User, site: Site) -> None:
    """Also while the turn waits for a person (T-17)."""
    first = site.starts(ann, says("Unused."))
    with pytest.raises(TurnInProgress) as caught:
        start_prompt(first.conversation, ann, "Another.")
    assert caught.value.prompt == first.pk
    assert (Prompt.objects.count(), Row.objects.count()) == (1, 1)


@pytest.mark.django_db
def test_a_message_is_taken_when_the_turn_before_it_has_ended(ann: User, site: Site) -> None:
    first = site.ended(ann, says("One."))
    assert start_prompt(first.conversation, ann, "Two?").number == 2


@pytest.mark.django_db
def test_the_systems_prompts_queue_and_run_oldest_first(ann: User, site: Site) -> None:
    """S4: they find the slot taken, wait for it, and are taken up in the order in which they came."""
    first = site.starts(ann, says("Zero."), says("One."), says("Two."))
    queued = [start_prompt(first.conversation, None, None), start_prompt(first.conversation, None, "It is ten.")]
    assert claimable(10) == [first.pk]
    assert claim(queued[0].pk, "worker:test", LEASE) is None, "the slot is taken"
    site.works()
    prompts = list(Prompt.objects.all())
    assert [prompt.state for prompt in prompts] == [State.COMPLETED] * 3
    starts = Row.objects.filter(type="action_start", path="").order_by("seq").values_list("prompt_id", flat=True)
    assert list(starts) == [first.pk, queued[0].pk, queued[1].pk]
    assert Conversation.objects.get().active_prompt is None
    assert [prompt.input for prompt in prompts] == ["Go.", None, "It is ten."]
    assert verify(first.conversation_id).problems == []


@pytest.mark.django_db
def test_the_younger_of_two_queued_prompts_is_not_claimable(ann: User) -> None:
    conversation = start_conversation(ann)
    older, younger = start_prompt(conversation, None, None), start_prompt(conversation, None, None)
    assert claimable(10) == [older.pk]
    assert claim(older.pk, "worker:test", LEASE)
    assert claimable(10) == []
    assert claim(younger.pk, "worker:test", LEASE) is None


@pytest.mark.django_db
def test_a_person_goes_before_what_the_system_queued(ann: User) -> None:
    """Nobody waits at the keyboard for a schedule."""
    conversation = start_conversation(ann)
    start_prompt(conversation, None, None)
    said = start_prompt(conversation, ann, "Go.")
    assert claimable(10) == [said.pk]


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["", "  \n ", None, "x" * 200_001])
def test_what_cannot_be_taken_leaves_nothing(ann: User, text: str | None) -> None:
    conversation = start_conversation(ann)
    with pytest.raises(BadInput):
        start_prompt(conversation, ann, text)
    assert not Prompt.objects.exists()


@pytest.mark.django_db
def test_what_is_said_is_kept_as_valid_text(ann: User) -> None:
    prompt = start_prompt(start_conversation(ann), ann, " a\r\nb\x00\ud800 \U0001f600 ")
    prompt.refresh_from_db()
    assert prompt.input == "a\nb\ufffd\ufffd \U0001f600"
    assert prompt.conversation.title == "a"
