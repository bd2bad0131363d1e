"""The wire server in a thread of this process."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from agents.providers.demo.rules import answer
from agents.providers.demo.server import listen, uvicorn_server
from tests.wire.app import RecordedRequest, Wire
from tests.wire.script import InOrder, Reply, Script


class WireServer:
    """The server in a thread, from construction until `stop()`; also a context manager.

    `script` may be a list of replies, used in order. It can be changed at any time.
    `requests` holds the last `keep` requests, oldest first. `strict_turns`, which can be changed too: see `Wire`.
    """

    def __init__(
        self, script: Script | Sequence[Reply] = answer, *, keep: int = 1000, strict_turns: bool = False
    ) -> None:
        self._app = Wire(answer, keep, strict_turns=strict_turns)
        self.script = script
        self._socket = listen()
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self._server = uvicorn_server(self._app)
        self._thread = threading.Thread(target=self._run, name="demo model", daemon=True)
        self._thread.start()

    @property
    def script(self) -> Script:
        """The script that chooses the answers."""
        return self._app.script

    @script.setter
    def script(self, script: Script | Sequence[Reply]) -> None:
        self._app.script = script if callable(script) else InOrder(script)

    @property
    def strict_turns(self) -> bool:
        """Whether it refuses what only the strictest servers refuse; see `Wire`."""
        return self._app.strict_turns

    @strict_turns.setter
    def strict_turns(self, strict: bool) -> None:
        self._app.strict_turns = strict

    @property
    def requests(self) -> deque[RecordedRequest]:
        """The requests received, oldest first."""
        return self._app.requests

    def stop(self) -> None:
        """End the server and its open streams, and wait for the thread."""
        self._server.should_exit = True
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))
