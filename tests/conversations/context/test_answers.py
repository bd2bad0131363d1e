"""What an answer is made of: texts, files, forms, counts, and errors."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import jsonschema
import openai
import pytest
from django.core.management import call_command
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from conversations.context.shapes import ChatCompletionChunk
from tests.conversations.context.conftest import Client, World
from tests.conversations.context.test_conversations import RUN, texts, user
from tests.wire.script import Call, Refusal, Reply


class City(BaseModel):
    """A city."""

    name: str
    people: int


def asking(text: str) -> list[Any]:
    return [user(text)]


def final(**answer: Any) -> Reply:
    return Reply("Let me think.", calls=(Call("final_answer", answer),))


def test_the_tiers_are_the_models(client: Client) -> None:
    models = client.sdk.models.list()
    assert [(model.id, model.owned_by) for model in models] == [("normal", "agentsite"), ("high", "agentsite")]


def test_a_whole_and_a_streamed_answer_say_the_same(world: World, client: Client) -> None:
    rounds = (Reply("I look.", calls=(Call("files_list", {}),)), Reply("Nothing, \u00e4\U0001f600."))
    world.speaks(*rounds, *rounds)
    whole = client.ask([user("Look")])
    chunks = list(client.ask([user("Look again")], stream=True, stream_options={"include_usage": True}))
    *pieces, counted = chunks
    assert "".join(chunk.choices[0].delta.content or "" for chunk in pieces) == whole.choices[0].message.content
    assert pieces[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in pieces][-1] == whole.choices[0].finish_reason == "stop"
    assert counted.usage.prompt_tokens > 0
    assert {chunk.id for chunk in chunks} == {f"chatcmpl-{pieces[0].metadata['prompt']}"}
    assert "Nothing, \u00e4\U0001f600." in whole.choices[0].message.content


def test_it_streams_while_the_model_speaks(world: World, client: Client) -> None:
    world.speaks(Reply("One. Two. Three. Four. Five.", pause_seconds=0.3))
    pieces = [chunk.choices[0].delta.content for chunk in client.ask([user("Count")], stream=True)]
    assert len([piece for piece in pieces if piece]) > 1


def test_the_tier_is_the_one_that_was_asked_for(world: World, client: Client) -> None:
    world.speaks(Reply("Hm."))
    answer = client.ask([user("Think")], model="high")
    assert answer.model == "high"
    assert client.prompts(answer.metadata["conversation"])[0]["model"] == "high"


def test_what_is_ignored_is_named(world: World, client: Client) -> None:
    world.speaks(Reply("Hm."))
    answer = client.sdk.chat.completions.with_raw_response.create(
        model="normal", temperature=0.5, stop=["x"], max_tokens=5, n=1,
        messages=[{"role": "system", "content": "Be a pirate."}, {"role": "user", "content": "Who are you?"}],
        metadata={"purpose": "test"}, extra_body={"evil\r\nheader": 1, "seed": None},
    )  # fmt: skip
    ignored = {name.strip() for name in answer.headers["x-ignored"].split(",")}
    assert ignored == {"temperature", "stop", "max_tokens", "metadata.purpose", "messages.system"}
    assert "pirate" not in json.dumps(world.asked())
    assert answer.headers["x-conversation"] == answer.parse().metadata["conversation"]  # type: ignore[index]


def test_files_are_links_and_widgets_are_words(world: World, client: Client) -> None:
    chart = {"title": "Sales", "kind": "bar", "labels": ["Jan", "Feb"], "series": [{"name": "Shoes", "values": [3, 5]}]}
    report = {"name": "q[1].md", "title": "Q", "text": "It."}
    world.speaks(Reply(calls=(Call("chart_show", chart), Call("report_write", report))), Reply("There."))
    answer = client.say("Show me")
    outputs = client.api(f"prompts/{answer.metadata['prompt']}/")["outputs"]
    files = [each for each in outputs if each["type"] == "file"]
    widgets = [each for each in outputs if each["type"] == "widget"]
    said = answer.choices[0].message.content
    assert files, outputs
    assert f"[q\\[1\\].md](http://127.0.0.1:{client.port}/files/{files[0]['file']['id']}/)" in said
    assert widgets[0]["fallback"] in said
    assert said.endswith("There.")


def test_answers_and_errors_are_as_described(world: World, client: Client) -> None:
    printed = StringIO()
    call_command("spectacular", format="openapi-json", stdout=printed)
    schema = json.loads(printed.getvalue())

    def held(method: str, path: str, status: int, kind: str, value: Any) -> None:
        described = schema["paths"][path][method]["responses"][str(status)]["content"][kind]["schema"]
        jsonschema.validate(value, {**described, "components": schema["components"]}, Draft202012Validator)

    path, body = "/context/chat/completions", {"model": "normal", "messages": asking("Go")}
    world.speaks(Reply("Hello."), RUN)
    for text, status in (("Go", 200), ("On", 200), ("And on", 409)):
        answered, said = client.send("POST", path, body | {"messages": asking(text), "metadata": client.place})
        assert answered == status
        held("post", path, status, "application/json", said)
        client.place = {"conversation": said.get("metadata", client.place)["conversation"]}
    held("get", "/context/models", 200, "application/json", client.send("GET", "/context/models")[1])
    world.speaks(RUN)
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    events = client.raw("POST", path, json.dumps(body | stream).encode())[2].decode().split("\n\n")
    pieces = [event.removeprefix("data: ") for event in events if event.startswith("data: {")]
    assert len(pieces) > 3
    for piece in pieces:
        held("post", path, 200, "text/event-stream", {"event": "message", "data": piece})
        ChatCompletionChunk.model_validate_json(piece)


# An answer of a form that the client chose


def test_an_answer_has_the_form_that_was_asked_for(world: World, client: Client) -> None:
    world.speaks(final(name="Zug", people="many"), final(name="Zug", people=30_000))
    answer = client.sdk.chat.completions.parse(model="normal", messages=asking("A city"), response_format=City)
    assert answer.choices[0].message.parsed == City(name="Zug", people=30_000)
    first, second = world.asked()
    (offered,) = [tool for tool in first["tools"] if tool["name"] == "final_answer"]
    assert offered["parameters"]["properties"]["people"]["type"] == "integer"
    assert "people" in json.dumps(second["input"][-1])  # what was wrong
    page = client.api(f"prompts/{answer.metadata['prompt']}/")  # type: ignore[index]
    assert json.loads(page["outputs"][-1]["text"]) == {"name": "Zug", "people": 30_000}


def test_a_streamed_one_is_nothing_but_the_form(world: World, client: Client) -> None:
    world.speaks(final(name="Zug", people=1))
    with client.sdk.chat.completions.stream(
        model="normal",
        messages=asking("A city"),
        response_format=City,
    ) as stream:
        done = stream.get_final_completion()
    assert done.choices[0].message.parsed == City(name="Zug", people=1)


def test_any_object_will_do_for_json_object(world: World, client: Client) -> None:
    world.speaks(Reply("In words."), final(anything=[1, {"b": None}]))
    answer = client.ask([user("JSON")], response_format={"type": "json_object"})
    assert json.loads(answer.choices[0].message.content) == {"anything": [1, {"b": None}]}


def test_a_form_that_is_never_met_is_an_error(world: World, client: Client) -> None:
    world.script(lambda _: final(name=1))
    with pytest.raises(openai.InternalServerError) as failed:
        client.sdk.chat.completions.parse(model="normal", messages=asking("A city"), response_format=City)
    assert (failed.value.status_code, failed.value.code) == (502, "parse_failures")


SCHEMAS: dict[str, Any] = {
    "no object": {"type": "array", "items": {}},
    "no schema": {"type": "object", "properties": {"a": {"type": "strin"}}},
    "leads outside": {"type": "object", "properties": {"a": {"$ref": "https://example.com/s.json"}}},
    "patterns of names": {"type": "object", "patternProperties": {"^(a+)+$": {}}},
    "look-ahead": {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)b"}}},
    "too long": {"type": "object", "description": "x" * 40_000},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_that_cannot_be_used_is_refused(world: World, client: Client, schema: Any) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "form", "schema": schema}}
    with pytest.raises(openai.BadRequestError) as refused:
        client.ask([user("Hi")], response_format=wanted)
    assert (refused.value.code, refused.value.param) == ("invalid_schema", "response_format")
    assert not world.asked()


# What is refused

REFUSED: dict[str, Any] = {
    "n": 2, "logprobs": True, "top_logprobs": 3, "tool_choice": "auto",
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
    "functions": [{"name": "f"}], "function_call": "auto", "modalities": ["text", "audio"],
    "web_search_options": {"a": 1},
}  # fmt: skip


@pytest.mark.parametrize("field", REFUSED)
def test_what_the_agent_does_not_do_is_refused_with_the_reason(client: Client, field: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.ask([user("Hi")], extra_body={field: REFUSED[field]})
    assert refused.value.param == field
    assert f"`{field}`" in refused.value.message
    assert not client.conversations()


BODIES: dict[str, tuple[Any, int, str]] = {
    "unknown model": ({"model": "gpt", "messages": [user("Hi")]}, 404, "model_not_found"),
    "no model": ({"messages": [user("Hi")]}, 400, "invalid"),
    "no messages": ({"model": "normal", "messages": []}, 400, "invalid"),
    "the model spoke last": (
        {"model": "normal", "messages": [user("Hi"), {"role": "assistant", "content": "Ho"}]}, 400, "no_user_message"
    ),
    "empty": ({"model": "normal", "messages": [user("  ")]}, 400, "empty_message"),
    "an image": (
        {"model": "normal", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        400, "unsupported_content",
    ),
    "too long": ({"model": "normal", "messages": [user("x" * 200_001)]}, 400, "invalid"),
    "no id": ({"model": "normal", "messages": [user("Hi")], "metadata": {"prompt": "x"}}, 400, "invalid_id"),
    "no time": ({"model": "normal", "messages": [user("Hi")], "metadata": {"wait": "301"}}, 400, "invalid_wait"),
    "not an object": ([1], 400, "invalid"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_cannot_be_used_says_why(client: Client, name: str) -> None:
    body, status, code = BODIES[name]
    answered, said = client.send("POST", "/context/chat/completions", body)
    assert (answered, said["error"]["code"]) == (status, code)
    assert said["error"].keys() == {"message", "type", "param", "code"}
    assert said["error"]["message"].strip().endswith((".", "`"))


def test_text_in_parts_is_text(world: World, client: Client) -> None:
    world.speaks(Reply("Hm."))
    client.ask([{"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}]}])
    assert texts(world.asked()[0]) == [("user", "One\nTwo")]


# Keys


def test_only_a_key_with_the_scope_may_talk(world: World, client: Client) -> None:
    with pytest.raises(openai.PermissionDeniedError) as refused:
        world.client("read", "chat", "passthrough").ask([user("Hi")])
    assert "'context'" in refused.value.message
    for key in ("", "agk_wrong"):
        with pytest.raises(openai.AuthenticationError):
            Client(client.port, key or "-").ask([user("Hi")])


def test_the_scope_opens_nothing_else(world: World) -> None:
    only = world.client("context")
    for path in ("/api/conversations/", "/api/approvals/", "/v1/models"):
        status, _ = only.send("GET", path)
        assert status == 403, path


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/context/chat/completions", 405),
        ("POST", "/context/models", 405),
        ("GET", "/context/", 404),
        ("GET", "/context", 404),
        ("GET", "/v1", 404),
        ("POST", "/context/responses", 404),
    ],
)
def test_other_addresses_and_methods_say_so_in_the_same_shape(
    client: Client, method: str, path: str, status: int
) -> None:
    answered, said = client.send(method, path, {})
    assert (answered, said["error"].keys()) == (status, {"message", "type", "param", "code"})


# Failures


def test_a_model_that_does_not_answer_is_an_error_that_is_not_repeated(world: World, client: Client) -> None:
    world.speaks(Reply(refusal=Refusal(400, "invalid_request_error", "Nonsense.")))
    with pytest.raises(openai.InternalServerError) as failed:
        client.sdk.with_options(max_retries=3).chat.completions.create(model="normal", messages=asking("Hi"))
    assert (failed.value.status_code, failed.value.code) == (502, "model_error")
    assert len(world.asked()) == 1


def test_in_a_stream_an_error_is_an_event(world: World, client: Client) -> None:
    world.speaks(Reply(refusal=Refusal(400, "invalid_request_error", "Nonsense.")))
    with pytest.raises(openai.APIError, match="The turn failed: model error"):
        list(client.ask([user("Hi")], stream=True))


def test_an_answer_that_the_model_s_limit_cut_says_so(world: World, client: Client) -> None:
    world.speaks(Reply("It goes on and", incomplete="max_output_tokens"))
    answer = client.say("Talk")
    assert answer.choices[0].finish_reason == "length"
    assert answer.choices[0].message.content.startswith("It goes")


def test_a_turn_that_a_limit_stopped_has_an_answer_as_far_as_it_got(world: World, client: Client) -> None:
    world.script(lambda _: Reply("More.", calls=(Call("files_list", {}),)))
    answer = client.say("For ever")
    assert answer.choices[0].finish_reason == "length"
    assert "Stopped after 10 rounds" in answer.choices[0].message.content


def test_a_key_that_is_revoked_ends_what_is_under_way(world: World, client: Client) -> None:
    world.speaks(Reply("Slowly.", delay_seconds=20))
    chunks = iter(client.ask([user("Hi")], stream=True))
    next(chunks)
    world.console("ApiKey.objects.order_by('-pk').first().delete()[0]")
    with pytest.raises(openai.APIError, match="may not be used"):
        list(chunks)
