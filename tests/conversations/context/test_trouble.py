"""What goes wrong while somebody asks: no room, nothing left to ask about, people who take their time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from typing import Any

import openai
import pytest
from django.test import Client as Visitor

from tests.agentsite.processes import PATIENCE_SECONDS, wait_for
from tests.conversations.context.conftest import Client, World
from tests.conversations.context.test_answers import City, final
from tests.conversations.context.test_conversations import RUN, user
from tests.conversations.context.test_gates import RAN
from tests.wire.script import Call, Reply

PATH = "/context/chat/completions"
STREAMS = 100
"""AGENTSITE_STREAMS."""


@contextmanager
def opened(client: Client, body: dict[str, Any]) -> Iterator[None]:
    """A stream that has said what it waits for, and is left open."""
    connection = HTTPConnection("127.0.0.1", client.port, timeout=PATIENCE_SECONDS)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {client.key}"}
    connection.request("POST", PATH, json.dumps({"model": "normal", "stream": True, **body}), headers)
    with closing(connection), connection.getresponse() as answer:
        assert answer.status == 200, answer.read()
        assert any(b"Decide: " in line for line in answer)
        yield


# No room


def test_who_is_refused_for_want_of_room_has_started_nothing(world: World, client: Client) -> None:
    world.speaks(RUN, Reply("There is room."))
    prompt = client.say("Run it").approval["prompt"]
    waits = {"messages": [user("-")], "metadata": {"prompt": prompt, "wait": 300}}
    with ExitStack() as streams:
        for _ in range(STREAMS):
            streams.enter_context(opened(client, waits))
        with pytest.raises(openai.RateLimitError) as refused:
            client.ask([user("Another")])
        assert refused.value.code == "throttled"
        assert len(client.conversations()) == 1
    body = {"model": "normal", "messages": [user("Another")]}
    assert wait_for(lambda: client.send("POST", PATH, body)[0] == 200)
    assert len(client.conversations()) == 2


# What is asked about is gone


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_conversation_that_is_deleted_meanwhile_is_not_found(world: World, client: Client, stream: bool) -> None:
    world.speaks(RUN)

    def ask() -> None:
        with closing(client.sdk) as sdk:
            found: Any = sdk.chat.completions.create(
                model="normal", messages=[{"role": "user", "content": "Run"}], stream=stream, metadata={"wait": "60"}
            )
            if stream:
                list(found)

    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(ask)
        (waiting,) = wait_for(client.waiting)
        wait_for(lambda: client.raw("DELETE", f"/api/conversations/{waiting['conversation']}/", b"{}")[0] == 204)
        with pytest.raises(openai.APIError) as refused:
            asking.result()
    assert refused.value.code == "conversation_not_found"


def test_a_key_that_is_revoked_just_before_the_answer_is_a_bad_key(world: World, client: Client) -> None:
    world.speaks(Reply("Slowly.", delay_seconds=2))
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(client.say, "Hi")
        wait_for(world.asked)
        world.console("ApiKey.objects.order_by('-pk').first().delete()[0]")
        with pytest.raises(openai.AuthenticationError) as refused:
            asking.result()
    assert refused.value.code == "bad_key"


def test_an_error_says_which_turn_it_is_about(world: World, client: Client) -> None:
    world.script(lambda _: final(name=1))
    with pytest.raises(openai.InternalServerError) as failed:
        client.sdk.chat.completions.parse(
            model="normal", messages=[{"role": "user", "content": "A city"}], response_format=City
        )
    (conversation,) = client.conversations()
    (prompt,) = client.prompts(conversation["id"])
    headers = failed.value.response.headers
    assert (headers["x-conversation"], headers["x-prompt"]) == (str(conversation["id"]), str(prompt["id"]))


def test_a_method_that_is_not_allowed_says_which_is(client: Client) -> None:
    status, headers, _ = client.raw("GET", PATH, b"")
    assert (status, headers["allow"]) == (405, "POST")


def test_a_request_that_cannot_be_read_is_no_unknown_address() -> None:
    answer = Visitor().post(PATH, headers={"Host": "evil.example"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed")


# People who take their time


def test_the_time_for_people_does_not_pass_while_the_agent_works(world: World, client: Client) -> None:
    world.speaks(Reply(RUN.text, calls=RUN.calls, delay_seconds=8), RAN)
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(client.say, "Run it", metadata={"wait": "7"})
        (waiting,) = wait_for(client.waiting)
        client.approve(waiting["id"])
        answer = asking.result()
    assert (answer.approval, answer.choices[0].message.content) == (None, "I will run it.\n\nIt ran.")


def test_a_streamed_form_that_waits_is_nothing_but_the_form(world: World, client: Client) -> None:
    world.speaks(RUN, final(name="Zug", people=1))
    wanted = {"type": "json_schema", "json_schema": {"name": "city", "schema": City.model_json_schema()}}
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(
            lambda: list(client.ask([user("A city")], stream=True, response_format=wanted, metadata={"wait": "60"}))
        )
        (waiting,) = wait_for(client.waiting)
        client.approve(waiting["id"])
        pieces = asking.result()
    assert json.loads("".join(piece.choices[0].delta.content or "" for piece in pieces)) == {"name": "Zug", "people": 1}


def test_a_form_that_waits_says_so_when_nobody_decides(world: World, client: Client) -> None:
    world.speaks(RUN)
    answer = client.ask([user("JSON")], response_format={"type": "json_object"}, metadata={"wait": "0.5"})
    assert answer.approval["items"]
    assert answer.choices[0].message.content.startswith("This waits for a decision:")


# Answers without a word


def test_after_an_answer_without_a_word_the_conversation_goes_on(world: World, client: Client) -> None:
    world.script(lambda _: Reply(calls=(Call("files_list", {}),)))
    first = client.say("JSON", response_format={"type": "json_object"})
    assert (first.choices[0].message.content, first.choices[0].finish_reason) == ("", "length")
    world.speaks(Reply("Yes."))
    assert client.say("Are you there?").metadata["conversation"] == first.metadata["conversation"]


def test_many_short_messages_are_cut_at_their_beginning(world: World, client: Client) -> None:
    world.speaks(Reply("Many."))
    client.ask([*(user(f"<{n}>") for n in range(1500)), user("Now")])
    sent = json.dumps(world.asked()[0])
    assert "[500 of the earlier messages left out.]" in sent
    assert ("<499>" in sent, "<500>" in sent) == (False, True)
