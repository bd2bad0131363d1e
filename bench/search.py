"""The search: texts of words that are as unequally frequent as those of a language, and long inputs that are all new.

Every tenth text is in Chinese. `put ms` is what it takes to write down the words of one text, `long put ms` of a
Chinese one of 20,000 characters. Milliseconds of a search are those of one process with an idle database: `p50` and
`p95` of inputs with as many words as `--words`, `short` of inputs of twelve, `Chinese` of as many Chinese characters as
`--words`. `found` are the ids of the best three of the first inputs: they must be the same on both databases, and the
command ends with 1 if they are not.
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

        text, chinese = _writer(), _chinese_writer()
        writers = [text] * 9 + [chinese]
        began = time.perf_counter()
        writer = itertools.cycle(writers)
        _put([((write := next(writer))(5), write(options.length - 5)) for _ in range(options.texts)])
        put = (time.perf_counter() - began) / options.texts
        began = time.perf_counter()
        _put([(chinese(5), chinese(20_000))], options.texts)
        long_put = time.perf_counter() - began
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE" if options.database == "sqlite" else "VACUUM ANALYZE")  # as it does by itself
        inputs = {
            "": [text(options.words) for _ in range(options.times)],
            "short ": [text(12) for _ in range(options.times)],
            "Chinese ": [chinese(options.words) for _ in range(options.times)],
        }
        return {
            "database": options.database,
            "put ms": put * 1000,
            "long put ms": long_put * 1000,
            **{title: took for name, given in inputs.items() for title, took in _milliseconds(name, given).items()},
            "found": [_found(input) for given in inputs.values() for input in given[:SHOWN]],
        }


def _writer() -> Callable[[int], str]:
    """Return a function that writes texts of so many words, by Zipf's law; the same texts in each process."""
    chance = random.Random(24)
    syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "il")]
    words = ["".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(VOCABULARY)]
    weights = list(itertools.accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    return lambda length: " ".join(chance.choices(words, cum_weights=weights, k=length))


def _chinese_writer() -> Callable[[int], str]:
    """Return a function that writes texts of so many characters, in sentences of a dozen; the same in each process."""
    chance = random.Random(25)
    characters = [chr(0x4E00 + n) for n in range(3000)]
    weights = list(itertools.accumulate(1 / rank for rank in range(1, len(characters) + 1)))

    def text(length: int) -> str:
        run = "".join(chance.choices(characters, cum_weights=weights, k=length))
        return "\u3002".join(run[at : at + 12] for at in range(0, length, 12))

    return text


def _put(texts: list[tuple[str, str]], before: int = 0) -> None:
    """Write down the words of these texts, of which there are so many already."""
    from django.db import transaction

    from agents.search import index

    for at in range(0, len(texts), AT_ONCE):
        with transaction.atomic():
            for row, (title, text) in enumerate(texts[at : at + AT_ONCE], before + at + 1):
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
