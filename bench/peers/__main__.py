"""The site beside its peers: LangGraph with its savers, and two loops that keep nothing, in one interleaved run.

All ask the same scripted model over loopback (Chat Completions), whose calls of an echo tool have 200 bytes. Ours
streams, as it always does; LangGraph asks langchain-openai's ChatOpenAI with `ainvoke`, and the SDK's loop is that of
its documentation: these do not stream. `raw` posts bytes with aiohttp: the least that a round can cost. Each contender
is a process of its own, and they are asked in turn, so that a slow moment of the machine meets all of them.

Figures are medians, with the least and the most in brackets. `ms a round` is a turn's time divided by its rounds, from
the message to the end; for ours, without the time until a worker finds it. `CPU ms` is that of the process that runs
the turn. Many at once: ours from the first message, sent by another process, to the last end, on a real worker with
one drain and with as many as it starts by default; `from claim` is without the sending. The others are one process.
Approvals: from before the decision to the start of the tool; ours between processes, LangGraph's within one; and from
the commit of as many messages until a worker claims their turns.

LangGraph is installed in a virtual environment of its own the first time, from the versions in `requirements.txt`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench import support
from bench.peers.contenders import KEEP_NOTHING, LANGGRAPH, NAMES, OURS, Contender, contender
from bench.processes import await_answer, free_port, started

WARM_ROUNDS = 3
MEASURES = ("turns", "many", "approvals")
Figures = dict[str, dict[str, list[float]]]
"""What was found, by measure and then by contender."""


def measure(options: argparse.Namespace) -> Figures:
    """Run everything. Returns all that was measured."""
    found: Figures = defaultdict(lambda: defaultdict(list))
    port = free_port()
    with ExitStack() as stack:
        stack.enter_context(started("-m", "bench.peers.model", f"--port={port}"))
        await_answer(f"http://127.0.0.1:{port}/")
        base_url = f"http://127.0.0.1:{port}/v1"
        all_of_them = [stack.enter_context(contender(name, base_url, options.venv)) for name in options.only]
        for each in all_of_them:
            each.do("turn", rounds=WARM_ROUNDS)
        for repeat in range(options.repeat):
            print(f"Run {repeat + 1} of {options.repeat} ...", file=sys.stderr)
            for name, contestant, value in _once(all_of_them, options):
                found[name][contestant].append(value)
    return found


def _once(contenders: Sequence[Contender], options: argparse.Namespace) -> Iterator[tuple[str, str, float]]:
    """Yield what one run finds: measure, contender, figure."""
    if "turns" in options.measure:
        for rounds in options.rounds:
            for each in contenders:
                done = each.do("turn", rounds=rounds)
                yield f"ms a round of {rounds}", each.name, done["seconds"] * 1000 / rounds
                yield f"CPU ms a round of {rounds}", each.name, done["cpu"] * 1000 / rounds
                if "bytes" in done:
                    yield f"bytes a round of {rounds}", each.name, done["bytes"] / rounds
    if "many" in options.measure:
        for each in contenders:
            yield from _many(each, options)
    if "approvals" in options.measure:
        for each in (each for each in contenders if each.name not in KEEP_NOTHING):
            done = each.do("approvals", times=options.approvals)
            yield from ((APPROVAL, each.name, seconds * 1000) for seconds in done["seconds"])
            yield from ((CLAIM, each.name, seconds * 1000) for seconds in done.get("claimed", ()))


APPROVAL, CLAIM = "ms from approval to start", "ms from commit to claim"


def _many(each: Contender, options: argparse.Namespace) -> Iterator[tuple[str, str, float]]:
    name = f"s, {options.turns} x {options.of_rounds} rounds at once"
    asked = {"turns": options.turns, "rounds": options.of_rounds, "delay_ms": options.latency}
    if each.name not in OURS:
        yield name, each.name, each.do("many", **asked)["seconds"]
        return
    for drains, said in (("1", name), ("", f"{name}, default drains")):
        done = each.do("many", **asked, drains=drains, workers=options.workers)
        yield said, each.name, done["seconds"]
        yield f"{said}, from claim", each.name, done["from_claim"]


def _table(found: Figures, names: Sequence[str]) -> str:
    rows: list[list[str]] = []
    for measured, of in found.items():
        worst = measured in (APPROVAL, CLAIM)
        rows.append([measured, *(_cell(of.get(name, ()), worst=worst) for name in names)])
    return support.table(["", *names], rows)


def _cell(values: Sequence[float], *, worst: bool) -> str:
    """Return the median and the spread of figures; if the `worst` is what matters, that instead of the spread."""
    if not values:
        return "-"
    digits = 0 if max(values) >= 1000 else 1
    middle, least, most = (f"{value:,.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return f"{middle}, worst {most}" if worst else f"{middle} ({least}-{most})"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=_names, default=NAMES, help=f"which contenders, of: {', '.join(NAMES)}")
    parser.add_argument("--measure", type=_measures, default=MEASURES, help=f"what, of: {', '.join(MEASURES)}")
    parser.add_argument("--repeat", type=int, default=5, help="how often each is asked in turn")
    parser.add_argument("--rounds", type=_numbers, default=[10, 50, 200], help="rounds of a turn, comma-separated")
    parser.add_argument("--turns", type=int, default=200, help="how many at once")
    parser.add_argument("--of-rounds", type=int, default=5, help="rounds of each of them")
    parser.add_argument("--latency", type=int, default=200, help="milliseconds of the model, in each of their rounds")
    parser.add_argument("--approvals", type=int, default=20, help="how many in each run")
    parser.add_argument("--workers", type=int, default=1, help="`manage.py worker` processes for many at once")
    parser.add_argument("--venv", type=Path, default=support.ROOT / "var" / "bench" / "peers", help="LangGraph's")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON instead of the table")
    options = parser.parse_args()
    found = measure(options)
    print(json.dumps(found) if options.json else _table(found, options.only))


def _names(text: str) -> list[str]:
    return _some(text, {"ours": OURS, "langgraph": LANGGRAPH} | {name: (name,) for name in NAMES})


def _measures(text: str) -> list[str]:
    return _some(text, {name: (name,) for name in MEASURES})


def _some(text: str, known: dict[str, tuple[str, ...]]) -> list[str]:
    wanted = [word.strip() for word in text.split(",")]
    if unknown := [word for word in wanted if word not in known]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: there are {', '.join(known)}")
    return [name for word in wanted for name in known[word]]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
