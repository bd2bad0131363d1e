"""Who asks for a call, and what an agent said beside it, wherever the card stands away from the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.urls import reverse

from agents.engine.execution.gates import ANOTHER, gate_call
from agents.engine.ledger import Step
from agents.engine.schema import schema_digest
from agents.plugins.shell.tools import run
from conversations.approvals.decisions import decide
from conversations.display.asker import WORDS_MOST
from conversations.models import Output
from conversations.notifications.mail import Notifier
from conversations.prompts.start import start_prompt
from tests.conversations.support import EXPIRES, Story, person, says
from tests.engine.support import digest_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("letters")]

LIST = "admin:conversations_approval_changelist"


def said_and_asked(owner: User, *texts: str) -> Output:
    """A command that waits, with what the agent wrote beside it."""
    story = Story(owner, "Tidy up.")
    story.asks_model()
    call = story.call("shell.run", command="rm -r build")
    story.answers(*map(says, texts), call)
    output = story.gate(call)
    story.pauses()
    return output


def asked_by_workflow(owner: User, *, question: bool = False) -> Output:
    """Something that the workflow "Clean up a workspace" asks: to delete files, or a question."""
    name = "workflow:workspace.clean_up"
    story = Story(owner)
    story.ends()
    story.prompt = start_prompt(story.conversation, owner, policy=name, payload={"folder": "."})
    if question:
        asked = {"ask": "question", "question": "Which ones?", "digest": "d", "expires_at": EXPIRES}
        story.append(gate_call("1", asked))
        return Output.objects.get(prompt=story.prompt, path="1")
    call = Step(
        f"policy:{name}",
        "action_call",
        {"policy": "workspace.delete", "payload": {"items": []}, "tool": True},
        path="1",
    )
    story.append(call)
    asked = {"ask": "approve", "title": "Delete files", "digest": "d", "risk": "destructive", "expires_at": EXPIRES}
    story.append(gate_call("1/human", asked))
    story.pauses()
    return Output.objects.get(prompt=story.prompt, path="1")


def pages(output: Output) -> list[str]:
    """The pages on which a card stands away from its conversation."""
    return [
        reverse("sheet", args=[output.conversation_id]),
        reverse("admin:conversations_approval_change", args=[output.pk]),
        f"{reverse('admin:conversations_approval_together')}?ids={output.pk}",
    ]


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", "", html))


def letter() -> str:
    Notifier().send_due()
    return str(mail.outbox[-1].body)


def test_what_the_agent_said_goes_with_the_card(client: Client, chief: User) -> None:
    output = said_and_asked(chief, "The build is stale, so I will remove it.")
    for page in pages(output):
        assert "The agent says The build is stale, so I will remove it." in words(client.get(page).text), page
    assert "The build is stale" in words(client.get(reverse(LIST)).text)
    assert "The agent says: The build is stale, so I will remove it." in letter()
    html = client.get(output.conversation.get_absolute_url()).text
    assert html.count("The build is stale") == 1, "there, it stands above the card"


def test_it_is_read_without_the_marks_of_markdown(client: Client, chief: User) -> None:
    """In the conversation they are rendered; beside a card nobody reads `**` aloud."""
    said = "**Two** things in `build`:\n\n- [old](https://example.com) files\n- <b>logs</b>\n\n```\n**/*.o\n```"
    output = said_and_asked(chief, said)
    read = "Two things in build: old files &lt;b&gt;logs&lt;/b&gt; **/*.o"
    for page in pages(output):
        assert f"The agent says {read}" in words(client.get(page).text), page


def test_what_was_said_of_several_calls_stands_at_the_first(client: Client, chief: User) -> None:
    story = Story(chief)
    story.asks_model()
    calls = [story.call("shell.run", command=f"rm {n}") for n in range(2)]
    story.answers(says("Both are stale."), *calls)
    outputs = [story.gate(call) for call in calls]
    story.pauses()
    ids = ",".join(str(output.pk) for output in outputs)
    for page in (pages(outputs[0])[0], f"{reverse('admin:conversations_approval_together')}?ids={ids}"):
        html = client.get(page).text
        assert html.count("Both are stale.") == 1
        assert html.index("Both are stale.") < html.index("Full command")


def calls_of_an_answer(owner: User, count: int) -> tuple[Story, list[Step]]:
    """An answer in which the agent says something of several commands."""
    story = Story(owner)
    story.asks_model()
    calls = [story.call("shell.run", command=f"rm {n}") for n in range(count)]
    story.answers(says("They are stale."), *calls)
    return story, calls


def shown_on(client: Client, outputs: Sequence[Output]) -> Iterator[str]:
    """The pages on which these cards stand one after the other."""
    ids = ",".join(str(output.pk) for output in outputs)
    for page in (pages(outputs[0])[0], f"{reverse('admin:conversations_approval_together')}?ids={ids}"):
        yield words(client.get(page).text)


def test_it_stands_at_the_next_if_the_first_was_interrupted(client: Client, chief: User) -> None:
    """What became of a call is no longer what the agent speaks of."""
    story, calls = calls_of_an_answer(chief, 3)
    story.append(Step(f"user:{chief.pk}", "action_result", {"decision": "approve"}, f"{calls[0].path}/human"))
    outputs = [story.gate(calls[0], kind="interrupted", reason="The worker stopped.")]
    outputs += [story.gate(call) for call in calls[1:]]
    story.pauses()
    for html in shown_on(client, outputs):
        assert html.count("The agent says They are stale.") == 1
        assert html.index("did this run?") < html.index("They are stale.") < html.index("rm 1") < html.index("rm 2")


def test_at_an_edited_call_it_is_about_the_original_input(client: Client, chief: User) -> None:
    """The others of the answer stand as they were asked for: there, it is not."""
    story, calls = calls_of_an_answer(person("ann"), 3)
    schema = schema_digest(run.input)
    outputs = [
        story.gate(call, who=ANOTHER, digest=digest_of(run, call.payload["payload"]), schema=schema) for call in calls
    ]
    story.pauses()
    first, editor = outputs[0], person("ben", is_superuser=True, is_staff=True)
    decide(first.pk, editor, "approve", digest=first.digest, via="admin", input={"command": "rm -i 0"})
    ids = ",".join(str(output.pk) for output in outputs)
    html = words(client.get(f"{reverse('admin:conversations_approval_together')}?ids={ids}").text)
    assert html.count("The agent says about its original input They are stale.") == 1
    assert html.count("The agent says They are stale.") == 1
    about, plain = html.index("about its original input"), html.index("The agent says They are stale.")
    assert plain < html.index("rm 1") < html.index("rm 2") < about < html.index("rm -i 0")


def test_a_decided_call_keeps_its_reason_in_the_admin(client: Client, chief: User) -> None:
    output = said_and_asked(chief, "The build is stale.")
    client.post(reverse("decide", args=[output.pk]), {"decision": "reject", "digest": output.digest})
    assert "The build is stale." in client.get(reverse(LIST), {"state": "all"}).text
    assert "The build is stale." in client.get(pages(output)[1]).text


def test_long_words_leave_the_call_in_view(client: Client, chief: User) -> None:
    output = said_and_asked(chief, "x" * (WORDS_MOST + 1))
    for page in pages(output):
        assert f">{'x' * WORDS_MOST}…<".replace(">", "").replace("<", "") in words(client.get(page).text)
        assert "x" * (WORDS_MOST + 1) not in client.get(page).text


def test_an_agent_that_says_nothing_is_not_quoted(client: Client, chief: User) -> None:
    output = said_and_asked(chief)
    for page in pages(output):
        assert "The agent says" not in client.get(page).text
    assert "The agent says" not in letter()


def test_a_workflow_asks_by_its_name(client: Client, chief: User) -> None:
    output = asked_by_workflow(chief)
    name = "Clean up a workspace"
    card = client.get(output.conversation.get_absolute_url()).text
    assert f'data-asker="“{name}”"' in card
    rejecting = client.get(f"{output.conversation.get_absolute_url()}?reject={output.pk}").text
    assert f"Reason (sent to “{name}”)" in words(rejecting)
    for page in pages(output):
        html = words(client.get(page).text)
        assert "the agent" not in html.lower()
    assert f"by {name}" in words(client.get(pages(output)[1]).text)
    assert f"Asked by {name}" in words(client.get(reverse(LIST)).text)
    assert f"Asked by {name}" in letter()


def test_a_title_stays_within_its_attribute(client: Client, chief: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks for what cannot be seen are HTML, which has no place there."""
    monkeypatch.setattr("conversations.display.asker.title_of", lambda policy: 'Clean\u200b "up"\u202e')
    output = asked_by_workflow(chief)
    html = client.get(output.conversation.get_absolute_url()).text
    assert 'data-asker="“Clean\u200b &quot;up&quot;[U+202E]”"' in html


def test_a_question_names_who_asks(client: Client, chief: User) -> None:
    output = asked_by_workflow(chief, question=True)
    for page in (output.conversation.get_absolute_url(), *pages(output)):
        assert "“Clean up a workspace” asks Which ones?" in words(client.get(page).text), page
