"""Server-sent events: the data of each event, from the bytes of a stream.

By the rules of https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation, as far as
data goes: model servers say everything in it. The `openai` SDK has such a decoder, beneath five asynchronous generators
that it does not close, so that each answer leaves the loop five tasks to close them.
"""

from __future__ import annotations

from collections.abc import Iterator


class EventData:
    """Reads the data of events from the pieces of a stream, however they are cut."""

    def __init__(self) -> None:
        self._line: list[bytes] = []  # the pieces of a line that has not ended
        self._data: list[bytes] = []  # the lines of an event that has not ended
        self._after_return = False

    def feed(self, piece: bytes) -> Iterator[str]:
        """Yield the data of each event that ends in this piece; of none that has only blank data, or no data at all.

        Raises UnicodeDecodeError if it is not UTF-8.
        """
        if not piece:
            return
        if self._after_return and piece.startswith(b"\n"):  # the second half of a line's end
            piece = piece[1:]
        self._after_return = piece.endswith(b"\r")
        for line in piece.splitlines(keepends=True):
            self._line.append(line.rstrip(b"\r\n"))
            if line.endswith((b"\r", b"\n")):
                whole = b"".join(self._line)
                self._line.clear()
                yield from self._ended(whole)

    def _ended(self, line: bytes) -> Iterator[str]:
        if line:
            field, _, value = line.partition(b":")
            if field == b"data":
                self._data.append(value.removeprefix(b" "))
            return
        data = b"\n".join(self._data)
        self._data.clear()
        if data.strip():
            yield data.decode()
