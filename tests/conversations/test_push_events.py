"""Events over the socket, as they happen and caught up with."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from tests.conversations.listening import Transcript, as_the_api_says, aside, cookie, following
from tests.conversations.support import asking

pytestmark = pytest.mark.django_db(transaction=True)


async def test_what_happens_is_told_as_it_happens(ann: User) -> None:
    """A client that only folds events has what the API says, at the end of the turn and before."""
    session = await aside(cookie, ann)
    story, _ = await aside(asking, ann)
    transcript = Transcript()
    async with following(story.conversation.pk, session) as socket:
        await socket.listen(transcript, lambda: transcript.state(story.prompt.pk) == "waiting_for_approval")
        assert [transcript.prompt(story.prompt.pk)] == await aside(as_the_api_says, ann, story.prompt.pk)
        await aside(story.ends, "cancelled", "cancelled", "Stopped.")
        await socket.listen(transcript, lambda: transcript.state(story.prompt.pk) == "cancelled")
    assert [transcript.prompt(story.prompt.pk)] == await aside(as_the_api_says, ann, story.prompt.pk)
