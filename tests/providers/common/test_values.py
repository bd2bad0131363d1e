"""What is kept of the definitions of tools."""

import gc
from weakref import ref

from agents.engine.interfaces.provider import ToolDefinition
from agents.providers.common.values import dumps, once_each


def test_a_definition_is_encoded_once_and_what_is_kept_of_it_goes_with_it() -> None:
    """The form of an answer is content of a conversation, which may be erased."""
    encoded: list[str] = []

    @once_each
    def encode(definition: ToolDefinition) -> bytes:
        encoded.append(definition.description)
        return dumps(definition.schema)

    first, second = (ToolDefinition("echo", "Say it again.", {"type": kind}) for kind in ("object", "string"))
    assert [encode(each) for each in (first, second, first)] == [
        b'{"type":"object"}',
        b'{"type":"string"}',
        b'{"type":"object"}',
    ]
    assert len(encoded) == 2
    gone = ref(first)
    del first
    gc.collect()
    assert gone() is None
