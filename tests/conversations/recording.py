"""Turns that a separate thread keeps recording, as a worker in another process would."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction

from agents.engine.ledger import Step
from conversations.models import Conversation, Draft
from tests.conversations.support import Story, says


class Paced(Story):
    """A turn whose records are held back until they may be written."""

    def __init__(self, pause: Callable[[], object], owner: User, conversation: Conversation) -> None:
        self._pause = pause
        super().__init__(owner, "Do it.", conversation)

    def append(self, *steps: Step) -> None:
        self._pause()
        super().append(*steps)


def record_turn(owner: User, conversation: Conversation, pause: Callable[[], object] = lambda: None) -> Story:
    """Yield a turn of 33 steps: streamed texts, calls, a gate that is decided, and the end."""
    story = Paced(pause, owner, conversation)
    for number in range(2):
        story.asks_model()
        stream(story, str(story.round), f"I will look \U0001f600 {number}. ")
        call, gated = story.call("files.read", path="a"), story.call("shell.run", command="ls")
        with transaction.atomic():
            story.answers(says("I will look."), call, gated)
            gone(story, str(story.round))
        story.begins(call)
        story.comes_to(call, {"content": "x" * 100})
    output = story.gate(gated)
    story.pauses()
    decision = {"decision": "approve", "digest": output.digest, "via": "page"}
    story.append(Step(f"user:{owner.pk}", "action_result", decision, output.gate_path))
    story.append(Step("runtime", "resume", {"resumed_reason": "all_actions_resolved", "steps_remaining": 9}))
    story.begins(gated)
    stream(story, gated.path, "a.txt\n")
    with transaction.atomic():
        story.comes_to(gated, "a.txt")
        gone(story, gated.path)
    story.ends()
    return story


def stream(story: Story, path: str, text: str) -> None:
    """Write a growing draft, as a worker does. The next record at its path deletes it."""
    place: dict[str, Any] = {"conversation": story.conversation, "prompt": story.prompt, "path": path}
    for end in range(0, len(text) + 1, 8):
        Draft.objects.update_or_create(
            **place, defaults={"attempt": 1, "fence": 1, "text": text[:end], "size": len(text[:end])}
        )


def gone(story: Story, path: str) -> None:
    """Delete the drafts at this path, as the record with the complete text does."""
    Draft.objects.filter(prompt=story.prompt, path=path).delete()


@contextmanager
def recording(
    owner: User, conversation: Conversation, pause: Callable[[], object] = lambda: None
) -> Iterator[list[int]]:
    """Turn after turn, until the block ends. Yields the ids of the prompts that have ended.

    `pause` is called, in the thread that records, before each record.
    """
    prompts: list[int] = []
    over = threading.Event()

    def record() -> None:
        try:
            while not over.is_set():
                prompts.append(record_turn(owner, conversation, pause).prompt.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=record, name="recording")
    thread.start()
    try:
        yield prompts
    finally:
        over.set()
        thread.join()
