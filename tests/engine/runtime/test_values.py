"""Actions, steps and ledgers are values: frozen, JSON only, checked where they are made."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from agents.engine import Action, Ledger, PolicyRegistry, Step, run
from agents.engine.errors import RegistryError
from agents.engine.ledger import canonical, text


@pytest.mark.parametrize("value", [Action("x"), Step("x", "text"), Ledger()])
def test_actions_steps_and_ledgers_are_frozen(value: object) -> None:
    """No attribute can be set (S104..S106)."""
    name = next(iter(value.__dataclass_fields__))  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, "other")


def test_an_action_has_defaults_and_never_a_payload_of_none() -> None:
    """Payload {} and no actions unless said otherwise (S104)."""
    assert (Action("x").payload, Action("x").actions) == ({}, frozenset())
    assert Action("x", actions={"a"}).actions == frozenset({"a"})  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Action("x", None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("payload", "where"),
    [
        ({"a": {1, 2}}, "payload.a: a set"),
        ({"a": [1, (2,)]}, r"payload.a\[1\]: a tuple"),
        ({"a": {1: 2}}, "payload.a: the key 1"),
        ({"a": float("nan")}, "payload.a: nan"),
        ({"a": {"b": b"x"}}, "payload.a.b: a bytes"),
        ([], "payload: a list is not a dict"),
    ],
)
def test_what_is_not_json_is_refused_by_its_place(payload: Any, where: str) -> None:
    """A payload is JSON, and the error names what is not (S105)."""
    with pytest.raises(TypeError, match=where):
        Step("x", "text", payload)


def test_a_step_keeps_what_it_was_made_of() -> None:
    """Who goes on changing a dict does not change the step that was made of it (S105)."""
    data: dict[str, Any] = {"rows": [1]}
    step = Step("tool:x", "widget", data)
    data["rows"].append(2)
    assert step.payload == {"rows": [1]}


def test_append_and_extend_return_a_new_ledger() -> None:
    """A ledger itself never grows; it has a length, indexes, slices and iteration (S106)."""
    one, two = text("model", "one"), text("model", "two")
    empty = Ledger()
    ledger = empty.append(one).extend([two])
    assert (len(empty), len(ledger)) == (0, 2)
    assert list(ledger) == [one, two]
    assert (ledger[0], ledger[-1], ledger[1:]) == (one, two, Ledger((two,)))


def test_a_reference_names_the_content_and_not_the_ids() -> None:
    """What is recorded of a ledger is its last id and a digest of what it says (R14)."""
    ledger = Ledger((text("model", "one"),))
    assert ledger.reference()["seq"] == 0
    assert ledger.numbered().reference() == {"seq": 1, "digest": ledger.reference()["digest"]}
    assert ledger.append(text("model", "two")).reference()["digest"] != ledger.reference()["digest"]


def test_the_engine_numbers_every_step_itself() -> None:
    """A ledger is numbered from 1, whatever ids its steps came with; a text is no id (S105, S115)."""
    own = Step(id="5f0c", actor="user", type="text", payload={"text": "a"})  # type: ignore[arg-type]
    seed = Ledger((own, Step("x", "text", {"text": "b"}, id=7), text("user", "c")))
    assert own.id == 0
    assert [step.id for step in seed.numbered()] == [1, 2, 3]


def test_canonical_json_is_one_text_per_value() -> None:
    """Sorted keys, no spaces, ASCII; no NaN."""
    assert canonical({"b": 1, "a": "é"}) == '{"a":"\\u00e9","b":1}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("inf"))


def test_a_name_has_one_owner() -> None:
    """A second policy under a name is refused, naming both (S111)."""
    registry = PolicyRegistry()

    @registry.register("search")
    async def first(action: Action, ctx: Any) -> list[Step]:
        """Look it up.

        More.
        """
        return []

    async def second(action: Action, ctx: Any) -> list[Step]:
        return []

    with pytest.raises(RegistryError, match=r"'search' is registered twice: by .*first and by .*second"):
        registry.register("search")(second)
    found = registry.get("search")
    assert found
    assert (found.description, found.schema) == ("Look it up.", {"type": "object"})
    assert registry.get("other") is None


async def _greet(action: Action, ctx: Any) -> list[Step]:
    return [Step("greet", "action_result", {"output": f"Hello {action.payload['name']}"})]


async def test_a_dict_of_policies_is_a_registry() -> None:
    """What has a name there can be run; what is no policy is refused (S111)."""
    ledger = await run("greet", {"name": "Ada"}, {"greet": _greet})
    assert ledger[-1].value == "Hello Ada"
    with pytest.raises(RegistryError, match="'greet' is not a policy"):
        await run("greet", {}, {"greet": {"func": _greet}})  # type: ignore[dict-item]


NAMED = {"type": "object", "properties": {"name": {"$ref": "#/$defs/name"}}, "required": ["name"]} | {
    "$defs": {"name": {"type": "string", "minLength": 1}}
}


@pytest.mark.parametrize(
    ("payload", "code", "message"),
    [
        ({"name": "Ada"}, None, None),
        ({}, "invalid_input", "name: Field required"),
        ({"name": ""}, "invalid_input", "name: Enter a value"),
        ({"name": 3}, "invalid_input", "name: Enter a text"),
    ],
)
async def test_an_input_can_be_a_json_schema(payload: dict[str, Any], code: str | None, message: str | None) -> None:
    """It is checked before the policy runs, and offered to a model as it is (S111)."""
    registry = PolicyRegistry()
    registry.register("greet", input=NAMED)(_greet)
    last = (await run("greet", payload, registry))[-1]
    assert (last.payload.get("code"), last.payload.get("message")) == (code, message)
    found = registry.get("greet")
    assert found
    assert found.schema == NAMED


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "objekt"}, "'greet': its input: it is not a JSON Schema: 'objekt' is not valid"),
        ({"minLength": "a"}, "'greet': its input: it is not a JSON Schema"),
        ({"$ref": "https://example.org/other"}, "refers to 'https://example.org/other', which it does not hold"),
        ({"items": [{"$ref": "#/$defs/none"}]}, "it is not a JSON Schema"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "refers to '#/\\$defs/none', which it does not hold"),
        ({"default": {1, 2}}, "the schema.default: a set is not JSON"),
        ("a text", "'greet': its input must be a pydantic model or a JSON Schema, not 'a text'"),
        (int, "'greet': its input must be a pydantic model or a JSON Schema, not <class 'int'>"),
    ],
)
def test_what_is_no_schema_is_refused_where_it_is_registered(schema: Any, why: str) -> None:
    """Not when somebody calls it (S111)."""
    with pytest.raises(RegistryError, match=why):
        PolicyRegistry().register("greet", input=schema)(_greet)
