"""The data of server-sent events, however a stream of them is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder

from agents.providers.common.sse import EventData

LINES = st.sampled_from(
    [
        "data: {}",
        "data:{}",
        "data",
        "data:",
        "data:  a",
        ": ping",
        "event: done",
        "id: 7",
        "retry: 3",
        "",
        "",
        "",
        "data: ü€",
    ]
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r"])), max_size=20).map(
    lambda lines: "".join(line + end for line, end in lines).encode()
)


def _read(pieces: list[bytes]) -> list[str]:
    data = EventData()
    return [text for piece in pieces for text in data.feed(piece)]


@given(STREAMS, st.lists(st.integers(min_value=0, max_value=200)))
def test_it_reads_what_the_sdk_reads_however_the_stream_is_cut(stream: bytes, cuts: list[int]) -> None:
    by_sdk = [event.data for event in SSEDecoder().iter_bytes(iter([stream])) if event.data.strip()]
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[begin:end] for begin, end in pairwise(places)]
    assert _read([stream]) == by_sdk
    assert _read(pieces) == by_sdk


def test_an_event_that_does_not_end_is_none() -> None:
    assert _read([b"data: 1\n\ndata: 2\n"]) == ["1"]


def test_lines_of_one_event_are_joined() -> None:
    assert _read([b"data: {\ndata: }\n\n"]) == ["{\n}"]


def test_what_is_not_utf_8_is_an_error() -> None:
    with pytest.raises(UnicodeDecodeError):
        _read([b"data: \xff\n\n"])
