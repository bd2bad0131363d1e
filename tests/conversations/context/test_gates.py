"""A gate ends the answer, with all that it takes to decide, and the work goes on when it is decided."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from tests.agentsite.processes import wait_for
from tests.conversations.context.conftest import Client, World
from tests.conversations.context.test_conversations import RUN, user
from tests.wire.script import Call, Refusal, Reply

TWO = Reply(calls=(Call("shell_run", {"command": "echo a"}), Call("shell_run", {"command": "echo b"})))
RAN = Reply("It ran.")


def of_turn(client: Client, prompt: str | int, **more: Any) -> Any:
    """The answer of a turn, asked for by its id."""
    metadata = {"prompt": str(prompt)} | ({"wait": str(more.pop("wait"))} if "wait" in more else {})
    return client.ask([user("anything")], metadata=metadata, **more)


def test_a_gate_ends_the_answer_and_says_where_to_decide(world: World, client: Client) -> None:
    world.speaks(RUN, RAN)
    answer = client.say("Run it")
    (choice,) = answer.choices
    assert choice.finish_reason == "stop"
    (waiting,) = client.waiting()
    page = f"http://127.0.0.1:{client.port}/c/{waiting['conversation']}/#a-{waiting['id']}"
    (item,) = answer.approval.pop("items")
    assert answer.approval == {"prompt": waiting["prompt"], "state": "waiting_for_approval"}
    assert item.pop("expires_at")
    assert item == {
        "id": waiting["id"], "url": page, "tool": "shell.run", "title": "Run a command", "reason": "Run: echo hi",
        "risk": "high",
    }  # fmt: skip
    assert choice.message.content.startswith("I will run it.\n\nThis waits for a decision:\n")
    assert page in choice.message.content


def test_asked_by_its_id_it_says_the_same_until_it_is_decided_and_then_the_answer(world: World, client: Client) -> None:
    world.speaks(RUN, RAN)
    answer = client.say("Run it")
    prompt = answer.approval["prompt"]
    again = of_turn(client, prompt)
    assert (again.approval, again.choices) == (answer.approval, answer.choices)
    client.approve(answer.approval["items"][0]["id"])
    done = wait_for(lambda: (found := of_turn(client, prompt)).choices[0].message.content.endswith("ran.") and found)
    assert done.choices[0].message.content == "I will run it.\n\nIt ran."
    assert done.approval is None
    assert done.usage.total_tokens == client.api(f"prompts/{prompt}/")["usage"]["total_tokens"]
    assert of_turn(client, prompt) == done
    assert len(client.prompts(done.metadata["conversation"])) == 1


def test_a_request_can_wait_for_the_decision(world: World, client: Client) -> None:
    world.speaks(RUN, RAN)
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(client.say, "Run it", metadata={"wait": "60"})
        (waiting,) = wait_for(client.waiting)
        client.approve(waiting["id"])
        answer = asking.result()
    assert answer.choices[0].message.content == "I will run it.\n\nIt ran."
    assert answer.approval is None


def test_a_stream_that_waits_shows_the_link_and_goes_on(world: World, client: Client) -> None:
    world.speaks(RUN, RAN)
    chunks = client.ask([user("Run it")], stream=True, metadata={"wait": "60"})
    text = ""
    for chunk in chunks:
        text += chunk.choices[0].delta.content or ""
        if "Decide: " in text and (waiting := client.waiting()):
            client.approve(waiting[0]["id"])
    assert text.startswith("I will run it.\n\nThis waits for a decision:")
    assert text.endswith("\n\nIt ran.")


def test_the_last_chunk_has_the_approval(world: World, client: Client) -> None:
    world.speaks(RUN)
    chunks = list(client.ask([user("Run it")], stream=True, stream_options={"include_usage": True}))
    *pieces, last, counted = chunks
    assert not any(hasattr(piece, "approval") for piece in pieces)
    assert last.choices[0].finish_reason == "stop"
    assert last.approval["items"][0]["tool"] == "shell.run"
    assert (counted.choices, counted.usage.total_tokens > 0) == ([], True)


def test_when_nobody_decides_in_time_the_gate_is_the_answer(world: World, client: Client) -> None:
    world.speaks(RUN)
    answer = client.say("Run it", metadata={"wait": "0.5"})
    assert answer.approval["items"]


def test_all_gates_of_an_answer_are_named(world: World, client: Client) -> None:
    world.speaks(TWO)
    answer = client.say("Run both")
    assert [item["reason"] for item in answer.approval["items"]] == ["Run: echo a", "Run: echo b"]
    assert answer.choices[0].message.content.startswith("This waits for 2 decisions:\n")


def test_a_message_to_a_turn_that_waits_is_told_what_it_waits_for(world: World, client: Client) -> None:
    world.speaks(RUN)
    answer = client.say("Run it")
    with pytest.raises(openai.ConflictError) as refused:
        client.sdk.with_options(max_retries=5).chat.completions.create(
            model="normal",
            messages=[*client.history, user("And now?")],  # type: ignore[list-item]
        )
    assert refused.value.code == "turn_in_progress"
    assert answer.approval["items"][0]["url"] in str(refused.value)  # many clients show nothing but the message
    assert json.loads(refused.value.response.content)["approval"] == answer.approval
    assert refused.value.response.headers["x-should-retry"] == "false"


def test_after_the_decision_the_next_message_finds_its_conversation(world: World, client: Client) -> None:
    world.speaks(RUN, RAN, Reply("As I said."))
    answer = client.say("Run it")
    client.approve(answer.approval["items"][0]["id"])
    place = answer.metadata["conversation"]
    wait_for(lambda: client.prompts(place)[0]["state"] == "completed")
    assert client.say("What came of it?").metadata["conversation"] == place
    outputs = [item for item in world.asked()[-1]["input"] if item.get("type") == "function_call_output"]
    assert "hi" in str(outputs[0]["output"])


def test_so_does_one_after_the_answer_that_was_asked_for_by_id(world: World, client: Client) -> None:
    world.speaks(RUN, RAN, Reply("As I said."))
    answer = client.say("Run it")
    client.approve(answer.approval["items"][0]["id"])
    done = client.ask(client.history[:1], metadata={"prompt": str(answer.approval["prompt"]), "wait": "60"})
    client.history[-1]["content"] = done.choices[0].message.content
    assert client.say("And?").metadata["conversation"] == done.metadata["conversation"]


def test_a_rejection_is_the_agent_s_to_answer(world: World, client: Client) -> None:
    world.speaks(RUN, Reply("Then I will not."))
    answer = client.say("Run it")
    (item,) = answer.approval["items"]
    digest = client.api(f"approvals/{item['id']}/")["approval"]["digest"]
    client.api(f"approvals/{item['id']}/reject/", {"digest": digest, "reason": "No."})
    done = of_turn(client, answer.approval["prompt"], wait=60)
    assert done.choices[0].message.content.endswith("Then I will not.")


def test_a_turn_of_somebody_else_is_not_found(world: World, client: Client) -> None:
    world.speaks(RUN)
    answer = client.say("Run it")
    with pytest.raises(openai.NotFoundError) as refused:
        of_turn(world.client(), answer.approval["prompt"])
    assert refused.value.code == "prompt_not_found"


def test_it_ends_a_request_that_waits_when_the_turn_is_stopped(world: World, client: Client) -> None:
    world.speaks(RUN)
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(client.say, "Run it", metadata={"wait": "60"})
        (waiting,) = wait_for(client.waiting)
        client.api(f"prompts/{waiting['prompt']}/cancel/", {})
        with pytest.raises(openai.ConflictError) as refused:
            asking.result()
    assert refused.value.code == "turn_stopped"


def test_a_message_that_was_refused_does_not_lose_the_conversation(world: World, client: Client) -> None:
    world.speaks(RUN, RAN, Reply("You asked whether I was done. I am."))
    answer = client.say("Run it")
    with pytest.raises(openai.ConflictError):
        client.say("Are you done?")  # which stays in the client's history
    client.approve(answer.approval["items"][0]["id"])
    of_turn(client, answer.approval["prompt"], wait=60)
    again = client.say("Well?")
    assert again.metadata["conversation"] == answer.metadata["conversation"]
    quoted = json.dumps(world.asked()[-1]["input"][-1])
    assert "[From the client" in quoted
    assert "Are you done?" in quoted


def test_one_whose_turn_failed_is_not_told_twice(world: World, client: Client) -> None:
    world.speaks(Reply("Hello."), Reply(refusal=Refusal(400, "invalid_request_error", "No.")), Reply("Here I am."))
    first = client.say("Hi")
    with pytest.raises(openai.InternalServerError):
        client.say("Are you there?")
    again = client.say("Still?")
    assert again.metadata["conversation"] == first.metadata["conversation"]
    assert json.dumps(world.asked()[-1]["input"]).count("Are you there?") == 1
