"""The words of all rows that can be found, written when a row is saved, and the search in them.

A *collection* is what is searched at once: "blueprints", or the memory of one person. Its rows, its words and its
counts are its own, so nothing of one is ever found in another, or changes the order in it.

A search looks at the rarest words of its text: at six, and at more while they stand in few rows together. A plain OR of
all words takes seconds for a long text. Of a long text, only its beginning and its end are looked at. Both databases
give the same rows in the same order.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from django.db import connection, transaction

from agents.models import SearchedWord, WordCount
from agents.search.words import asked_words, is_piece, words

T = TypeVar("T")

ROWS = ""
"""The word that each row has, so that rows can be counted like words."""
USUAL_SHARE, USUAL_LEAST = 0.05, 20
"""A word that stands in more rows than this share of them says little, and is not looked for. In so few rows, it is."""
WORDS_LEAST, PLACES_MOST = 6, 500
"""A search looks for this many words, the rarest, and for more while all of them stand in fewer rows than this."""
TITLE_WEIGHT = 5
"""How often a word in a title counts in the ranking."""
SHARED_SHARE, TITLE_SHARED = 3, 2
"""A row is found if it has one of three words that are looked for; of more, it must have two, or one in its title."""
AT_ONCE = 5000
"""Values of one statement; SQLite takes 32,766 at most."""

_WORD, _COUNT = SearchedWord._meta.db_table, WordCount._meta.db_table


class Match(NamedTuple):
    """A row that was found, by its id. Among rows of one search, a higher score is better."""

    row: int
    score: float


def put(collection: str, row: int, title: str, text: str) -> None:
    """Write down the words of a row, in place of those that were written before. In the caller's transaction."""
    _write(collection, row, {ROWS: False} | dict.fromkeys(words(text), False) | dict.fromkeys(words(title), True))


def drop(collection: str, row: int) -> None:
    """Remove the words of a row: it is not found any more. In the caller's transaction."""
    if SearchedWord.objects.filter(collection=collection, row=row).exists():
        _write(collection, row, {})


def best(
    collection: str, text: str, most: int, among: Collection[int] | None = None, *, one_is_enough: bool = False
) -> list[Match]:
    """Return the rows of a collection that fit a text best, the best first, at most so many.

    `among`: the ids of those that may be found; None: all. Rows are ranked by the sum of their words, of which each
    counts more the fewer rows have it, and five times in a title; of equal ones, the lower id comes first. A row that
    shares one of many words with the text is not found, see SHARED_SHARE.

    `one_is_enough`: it is found; and if all words that the text shares with the collection are usual, the rarest of
    them are looked for. For collections of short rows, and of few: a usual word may stand in all of them.
    """
    asked = asked_words(text)
    counts = _counts(collection, [ROWS, *asked])
    rows = counts.pop(ROWS, 0)
    usual = max(USUAL_LEAST, USUAL_SHARE * rows)
    telling = [word for word in asked if counts.get(word, 0) <= usual]
    chosen = _rarest(telling, counts, WORDS_LEAST) or (_rarest(asked, counts, 1) if one_is_enough else [])
    weights = {word: math.log(1 + rows / counts[word]) for word in chosen}
    several = sum(word in counts or not is_piece(word) for word in telling)
    least = 1 if one_is_enough else math.ceil(min(several, WORDS_LEAST) / SHARED_SHARE)
    found: dict[int, list[float]] = {}
    shared: Counter[int] = Counter()
    for row, word, in_title in _places(collection, weights):
        if among is None or row in among:
            found.setdefault(row, []).append(weights[word] * (TITLE_WEIGHT if in_title else 1))
            shared[row] += TITLE_SHARED if in_title else 1
    # The exact sum does not depend on the order in which a database returns the words.
    matches = (Match(row, math.fsum(scores)) for row, scores in found.items() if shared[row] >= least)
    return sorted(matches, key=lambda match: (-match.score, match.row))[:most]


def lock(collections: Iterable[str]) -> None:
    """Keep others from writing words of these collections until the transaction ends.

    One writes at a time, so the words of two rows that share some never wait for one another in a circle.
    """
    _add([(collection, ROWS, 0) for collection in sorted(set(collections))])


def drop_all(collection: str) -> None:
    """Remove the words of all rows of a collection, which are about to go. In the caller's transaction."""
    lock([collection])
    for table in (SearchedWord, WordCount):
        table.objects.filter(collection=collection).delete()


def _rarest(words: Iterable[str], counts: Mapping[str, int], least: int) -> list[str]:
    """Return those of these words to look for: so many, if there are, and more while they stand in few rows."""
    known = sorted((counts[word], word) for word in words if word in counts)
    taken: list[str] = []
    places = 0
    for count, word in known:
        places += count
        if len(taken) >= least and places > PLACES_MOST:
            break
        taken.append(word)
    return taken


def _counts(collection: str, asked: Collection[str]) -> dict[str, int]:
    """Return in how many rows these words stand, those that stand in any."""
    return {word: rows for word, rows in _select("word, rows", _COUNT, collection, asked) if rows > 0}


def _places(collection: str, asked: Collection[str]) -> list[tuple[int, str, bool]]:
    """Return where these words stand: the row, the word, and whether it is in its title."""
    return _select("row, word, in_title", _WORD, collection, asked) if asked else []


def _select(columns: str, table: str, collection: str, asked: Collection[str]) -> Any:
    """Return these columns of the lines of a table that have one of these words.

    All words are one parameter: thousands of them are ten times as slow on PostgreSQL.
    """
    postgres = connection.vendor == "postgresql"
    one_of = "= ANY(%s)" if postgres else "IN (SELECT value FROM json_each(%s))"
    given = list(asked)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {columns} FROM {table} WHERE collection = %s AND word {one_of}",
            [collection, given if postgres else json.dumps(given)],
        )
        return cursor.fetchall()


def _write(collection: str, row: int, now: Mapping[str, bool]) -> None:
    """Replace the words of a row by these, each with whether it stands in the title, and count them."""
    with transaction.atomic():
        lock([collection])
        written = SearchedWord.objects.filter(collection=collection, row=row)
        before = dict(written.values_list("word", "in_title"))
        gone = [word for word in before if word not in now]
        for some in _parts([word for word in before if before[word] != now.get(word)]):
            written.filter(word__in=some).delete()
        SearchedWord.objects.bulk_create(
            SearchedWord(collection=collection, word=word, row=row, in_title=in_title)
            for word, in_title in now.items()
            if before.get(word) != in_title
        )
        new = (word for word in now if word not in before)
        _add([*((collection, word, 1) for word in new), *((collection, word, -1) for word in gone)])
        for some in _parts([ROWS, *gone]):
            WordCount.objects.filter(collection=collection, word__in=some, rows=0).delete()


def _add(changes: Sequence[tuple[str, str, int]]) -> None:
    """Add to the counts of words, each once: the collection, the word, and how many rows more have it."""
    for some in _parts(changes):
        values = ", ".join(["(%s, %s, %s)"] * len(some))
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {_COUNT} (collection, word, rows) VALUES {values}"
                f" ON CONFLICT (collection, word) DO UPDATE SET rows = {_COUNT}.rows + excluded.rows",
                [value for change in some for value in change],
            )


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the items in parts that fit into a statement."""
    yield from (items[at : at + AT_ONCE] for at in range(0, len(items), AT_ONCE))
