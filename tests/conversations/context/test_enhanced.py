"""The whole prompt at `/v1/system-prompts/<id>/enhanced`: exactly what a turn's model is told before the messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conversations.context.conftest import Client, World
from tests.wire.script import Reply

TEXT = 'You work for {user} on {date} at {site}. Answer as {"like": "this"}.'


@pytest.fixture
def prompt(world: World) -> int:
    """A system prompt with variables, which no conversation has yet."""
    made = world.console(
        f"[(p := SystemPrompt.objects.create(name='Terse {id(world)}' + str(SystemPrompt.objects.count()))),"
        f" p.write({TEXT!r}, User.objects.first(), None), p.pk][-1]"
    )
    assert isinstance(made, int)
    return made


def whole(client: Client, pk: int, query: str = "") -> Any:
    status, said = client.send("GET", f"/v1/system-prompts/{pk}/enhanced{query}")
    assert status == 200, said
    return said


def test_it_is_what_a_turn_s_model_is_told(world: World, client: Client, prompt: int) -> None:
    world.speaks(Reply("Yes."))
    talk = client.api("conversations/", {"system_prompt": prompt})["id"]
    client.ask([{"role": "user", "content": "Hi"}], metadata={"conversation": str(talk)})
    (asked,) = world.asked()
    said = whole(client, prompt)
    assert said["text"] == asked["instructions"]
    assert said["text"].startswith("You work for person")
    assert 'Answer as {"like": "this"}.' in said["text"]
    assert [tool.pop("category") is not None for tool in said["tools"]]
    offered = [{name: tool[name] for name in ("name", "description", "parameters")} for tool in asked["tools"]]
    assert said["tools"] == offered
    assert (said["id"], said["version"], said["protocol"]) == (prompt, 1, "native")


def test_the_parts_are_the_whole(client: Client, prompt: int) -> None:
    said = whole(client, prompt)
    names = [part["name"] for part in said["parts"]]
    assert (names[0], names[-1]) == ("base", "tools")
    told = sum(part["tokens"] for part in said["parts"] if part["name"] != "tools")
    assert abs(told - len(said["text"].encode()) / 4) < 1 + len(said["parts"])


def test_tools_stand_by_category_below_headings_in_the_text(client: Client, prompt: int) -> None:
    native, in_text = whole(client, prompt), whole(client, prompt, "?protocol=json")
    assert in_text["tools"] == []
    assert in_text["text"].startswith(native["text"])
    places = [in_text["text"].index(f"{tool['name']}\n") for tool in native["tools"]]
    assert places == sorted(places)
    categories = [tool["category"] for tool in native["tools"]]
    assert [category for n, category in enumerate(categories) if category not in categories[:n]] == [
        category for n, category in enumerate(categories) if n == 0 or category != categories[n - 1]
    ]
    for category in set(categories) - {None}:
        assert f"# {category}\n" in in_text["text"]


@pytest.mark.parametrize(("scopes", "status"), [(("read",), 200), (("context",), 200), (("passthrough",), 403)])
def test_a_key_that_may_read_or_talk_may_see_it(
    world: World, prompt: int, scopes: tuple[str, ...], status: int
) -> None:
    assert world.client(*scopes).send("GET", f"/v1/system-prompts/{prompt}/enhanced")[0] == status


def test_nobody_else_may(client: Client, prompt: int) -> None:
    status, said = Client(client.port, "-").send("GET", f"/v1/system-prompts/{prompt}/enhanced")
    assert (status, said["error"]["code"]) == (401, "bad_key")


def test_what_is_not_there_says_so(client: Client, prompt: int) -> None:
    for path, status, code in (
        ("999999/enhanced", 404, "system_prompt_not_found"),
        (f"{'9' * 30}/enhanced", 404, "system_prompt_not_found"),
        (f"{prompt}/enhanced?protocol=xml", 400, "unknown_protocol"),
        (f"{prompt}/enhanced/", 404, "unknown_address"),
    ):
        answered, said = client.send("GET", f"/v1/system-prompts/{path}")
        assert (answered, said["error"]["code"]) == (status, code), path
    assert json.dumps(whole(client, prompt)["text"])
