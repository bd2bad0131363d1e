"""Passing through: what `/v1` adds to a request, beside LiteLLM's proxy and beside asking the model server itself.

Real processes on loopback: a model server that costs next to nothing, `python -m agentsite.web` on a fresh SQLite
database with a key made for this, and LiteLLM with one worker, its master key and no database, so that it looks up no
key and counts nothing. Each client asks again as soon as it has its answer: at 32 clients the times say how long the
queue is. All are asked in turn, in short blocks, so that what else the machine does meets all of them alike.

Milliseconds are until the first byte of the body (`first`) and until its last (`whole`); `added` is the difference to
the same percentile of the direct requests, and `times` the ratio of the medians. `per_s` is requests a second, and
`percent` how many of the direct ones that is. `cpu_ms` is the CPU time of the passing process for each request; in the
direct rows, that of the model server. `same` says whether the body is that of the model server, byte by byte.
LiteLLM is installed in a virtual environment of its own the first time; `--without-litellm` does without it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import litellm, model_server, support
from bench.load import Target, Timed, connected, load
from bench.processes import await_answer, cpu_seconds, free_port, started

CLIENTS = (1, 32)
DIRECT, SITE, LITELLM = "direct", "agentsite", "litellm"


class Case(NamedTuple):
    """What is measured at a time."""

    stream: bool
    clients: int


class Measured(Timed):
    """The times of all blocks of a case at one target, and the CPU seconds of its process in them."""

    def __init__(self) -> None:
        super().__init__()
        self.cpu = 0.0

    def add(self, timed: Timed, cpu: float) -> None:
        """Add a block."""
        self.first += timed.first
        self.whole += timed.whole
        self.seconds += timed.seconds
        self.cpu += cpu


@contextmanager
def _direct(options: argparse.Namespace) -> Iterator[Target]:
    port = free_port()
    with started("-m", "bench.model_server", f"--port={port}", f"--pause={options.pause}") as pid:
        await_answer(f"http://127.0.0.1:{port}/")
        yield Target(DIRECT, port, "bench", pid)


@contextmanager
def _site(model: Target) -> Iterator[Target]:
    """The site, without a limit of requests."""
    port = free_port()
    settings = {"PORT": str(port), "AGENTSITE_PASSTHROUGH_REQUESTS_A_MINUTE": "0"}
    with support.site("sqlite", f"http://127.0.0.1:{model.port}/v1", **settings):
        from conversations.accounts.keys import make_key
        from conversations.models import Scope

        _, key = make_key(support.person(), "bench", [Scope.PASSTHROUGH])
        with started("-m", "agentsite.web") as pid:
            await_answer(f"http://127.0.0.1:{port}/login/")
            yield Target(SITE, port, key, pid)


@contextmanager
def _litellm(program: Path, model: Target) -> Iterator[Target]:
    port, key = free_port(), litellm.new_key()
    upstream = {"model": "openai/bench", "api_base": f"http://127.0.0.1:{model.port}/v1", "api_key": "bench"}
    with (
        tempfile.TemporaryDirectory(prefix="agentsite-passthrough-") as folder,
        litellm.proxy(program, Path(folder), port, key, [litellm.model("bench", **upstream)]) as pid,
    ):
        yield Target(LITELLM, port, key, pid)


async def _measure(targets: Sequence[Target], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each case and target."""
    same = {(target.name, stream): await _same(target, stream) for target in targets for stream in (False, True)}
    cases = [Case(stream, clients) for stream in (False, True) for clients in CLIENTS]
    found = {(case, target.name): Measured() for case in cases for target in targets}
    for target in targets:
        for stream in (False, True):
            await load(target, max(CLIENTS), options.warm_up, stream=stream)
    for block in range(options.blocks):
        print(f"Block {block + 1} of {options.blocks} ...", file=sys.stderr)
        for case in cases:
            for target in targets:
                before = cpu_seconds(target.pid)
                timed = await load(target, case.clients, options.seconds, stream=case.stream)
                found[case, target.name].add(timed, cpu_seconds(target.pid) - before)
    return [
        _row(case, target.name, found[case, target.name], found[case, DIRECT])
        | {"same": same[target.name, case.stream]}
        for case in cases
        for target in targets
    ]


async def _same(target: Target, stream: bool) -> str:
    client = await connected(target)
    try:
        await client.ask(target.request(stream=stream))
        expected = b"".join(model_server.events()) if stream else model_server.completion()
        return "yes" if client.body == expected else "no"
    finally:
        client.close()


def _row(case: Case, name: str, measured: Measured, direct: Measured) -> dict[str, Any]:
    count = len(measured.whole)
    first, whole, direct_whole = _cuts(measured.first), _cuts(measured.whole), _cuts(direct.whole)
    rate, direct_rate = count / measured.seconds, len(direct.whole) / direct.seconds
    return {
        "answer": "stream" if case.stream else "json", "clients": case.clients, "asked": name, "requests": count,
        "first_p50": first[49], "first_p99": first[98], "whole_p50": whole[49], "whole_p99": whole[98],
        "added_p50": whole[49] - direct_whole[49], "added_p99": whole[98] - direct_whole[98],
        "times": whole[49] / direct_whole[49],
        "per_s": rate, "percent": 100 * rate / direct_rate, "cpu_ms": measured.cpu * 1000 / count,
    }  # fmt: skip


def _cuts(seconds: Sequence[float]) -> list[float]:
    """Return the 99 percentiles in milliseconds."""
    return [1000 * cut for cut in statistics.quantiles(seconds, n=100, method="inclusive")]


def _against_litellm(rows: Sequence[dict[str, Any]]) -> str:
    """Return how many times the requests per second of LiteLLM the site answers, case by case."""
    rates = {(row["answer"], row["clients"], row["asked"]): row["per_s"] for row in rows}
    cases = dict.fromkeys((row["answer"], row["clients"]) for row in rows)
    said = [f"{case[0]} at {case[1]}: {rates[*case, SITE] / rates[*case, LITELLM]:.1f}" for case in cases]
    return f"Requests per second, in times those of LiteLLM: {', '.join(said)}."


def main() -> None:
    """Measure, and print the table and the JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.passthrough", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", type=int, default=10, help="how often each is asked in turn")
    parser.add_argument("--seconds", type=float, default=3, help="how long, each time")
    parser.add_argument("--warm-up", type=float, default=2, help="seconds before that which do not count")
    parser.add_argument("--pause", type=float, default=0, help="seconds between two events of a stream")
    parser.add_argument("--without-litellm", action="store_true", help="leave LiteLLM out")
    parser.add_argument("--litellm", type=Path, help="the path of the program `litellm`, if it is installed")
    parser.add_argument("--venv", type=Path, default=support.ROOT / "var" / "bench" / "litellm", help="where it goes")
    options = parser.parse_args()
    with ExitStack() as stack:
        targets = [stack.enter_context(_direct(options))]
        targets.append(stack.enter_context(_site(targets[0])))
        if not options.without_litellm:
            program = options.litellm or litellm.installed(options.venv)
            print(litellm.version(program))
            targets.append(stack.enter_context(_litellm(program, targets[0])))
        rows = asyncio.run(_measure(targets, options))
    print(support.table(list(rows[0]), [list(row.values()) for row in rows]))
    if not options.without_litellm:
        print(_against_litellm(rows))
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
