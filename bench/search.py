"""The search: texts of words that are as unequally frequent as those of a language, and long inputs that are all new.

`put ms` is what it takes to write down the words of one text. Milliseconds of a search are those of one process with an
idle database: `p50` and `p95` of inputs with as many words as `--words`, `short` of inputs of twelve. `found` are the
ids of the best three of the first inputs: they must be the same on both databases, and the command ends with 1 if they
are not.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from bench import support

VOCABULARY = 30_000
AT_ONCE = 25
"""Texts whose words are written in one transaction."""
SHOWN = 3
"""Inputs whose best are printed, and how many of each."""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures on one database."""
    with support.site(options.database, "http://127.0.0.1:9/v1"):
        from django.db import connection

        text = _writer()
        began = time.perf_counter()
        _put([(text(5), text(options.length - 5)) for _ in range(options.texts)])
        put = (time.perf_counter() - began) / options.texts
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE" if options.database == "sqlite" else "VACUUM ANALYZE")  # as it does by itself
        long, short = ([text(length) for _ in range(options.times)] for length in (options.words, 12))
        return {
            "database": options.database,
            "put ms": put * 1000,
            **_milliseconds("", long),
            **_milliseconds("short ", short),
            "found": [_found(input) for input in (*long[:SHOWN], *short[:SHOWN])],
        }


def _writer() -> Callable[[int], str]:
    """Return a function that writes texts of so many words, by Zipf's law; the same texts in each process."""
    chance = random.Random(24)
    syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "il")]
    words = ["".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(VOCABULARY)]
    weights = list(itertools.accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    return lambda length: " ".join(chance.choices(words, cum_weights=weights, k=length))


def _put(texts: list[tuple[str, str]]) -> None:
    from django.db import transaction

    from agents.search import index

    for at in range(0, len(texts), AT_ONCE):
        with transaction.atomic():
            for row, (title, text) in enumerate(texts[at : at + AT_ONCE], at + 1):
                index.put("bench", row, title, text)


def _found(input: str) -> list[int]:
    from agents.search import index

    return [match.row for match in index.best("bench", input, SHOWN)]


def _milliseconds(name: str, inputs: list[str]) -> dict[str, float]:
    took = []
    for input in inputs:
        began = time.perf_counter()
        _found(input)
        took.append((time.perf_counter() - began) * 1000)
    return {f"{name}p50 ms": statistics.median(took), f"{name}p95 ms": statistics.quantiles(took, n=20)[-1]}


def main() -> None:
    """Measure on both databases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--length", type=int, default=150, help="words of a text, five of them in its title")
    parser.add_argument("--words", type=int, default=5000, help="words of a long input")
    parser.add_argument("--times", type=int, default=200, help="inputs")
    figures = support.on_databases(parser, "bench.search", measure)
    rows = [[name, *(each[name] for each in figures)] for name in figures[0] if name not in ("database", "found")]
    print(support.table(["", *(each["database"] for each in figures)], rows))
    print(f"found: {figures[0]['found']}")
    if any(each["found"] != figures[0]["found"] for each in figures):
        raise SystemExit("The databases found different texts.")


if __name__ == "__main__":
    main()
