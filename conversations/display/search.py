"""Searching conversations: their titles, messages and answers.

All words must occur in one title, one message or one text of the agent. Ledgers and results of tools are not searched.
The newest conversations come first, and the database stops at the number asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial, reduce
from itertools import chain
from operator import and_, or_
from typing import Any

from django.db import connection
from django.db.models import BooleanField, Case, F, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.lookups import IsNull, Lookup

from agents.engine.ledger import canonical, valid_text
from conversations.models import Conversation, Output, Prompt

TEXT_MOST, WORDS_MOST = 200, 8
"""Characters and words of a search; further ones are ignored."""
BEFORE, LONG = 12, 120
"""Characters of a quote before the first match, and in total."""


class Like(Lookup):
    """`column LIKE pattern`, ignoring the case of ASCII letters; a backslash escapes wildcards."""

    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the SQL and its parameters."""
        column, values = self.process_lhs(compiler, connection)
        # Of another collation, PostgreSQL would make each row's letters small by the rules of a language, which takes
        # twice the time.
        like = 'COLLATE "C" ILIKE' if connection.vendor == "postgresql" else "LIKE"
        return rf"{column} {like} %s ESCAPE '\'", (*values, self.rhs)


class Contains(Lookup):
    """Whether a text occurs in a column, ignoring the case of ASCII letters."""

    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the SQL and its parameters."""
        return Like(self.lhs, _pattern(self.rhs)).as_sql(compiler, connection)

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the SQL for PostgreSQL, which looks for a text three times as fast as for a pattern."""
        column, values = self.process_lhs(compiler, connection)
        return f'strpos(lower({column} COLLATE "C"), lower(%s COLLATE "C")) > 0', (*values, self.rhs)


def search(conversations: QuerySet[Conversation], text: str, most: int) -> dict[int, str]:
    """Return the newest of these conversations that match all words of the text, at most `most`.

    By id, in order; each with a quote of the match, "" if the title matches.
    """
    words = words_of(text)
    if not words:
        return {}
    inputs = Prompt.objects.filter(all_words(words, partial(contains, "input")), visible=True)
    texts = Output.objects.filter(in_output(words, "text", "type"), type="text", prompt__visible=True)
    of_this = {"conversation": OuterRef("pk")}
    in_text = _any_of(inputs.filter(**of_this)) | _any_of(texts.filter(**of_this))
    matches = all_words(words, partial(contains, "title")) | in_text
    found = conversations.filter(matches).order_by("-updated_at")[:most]
    titles = dict(found.values_list("pk", "title"))
    elsewhere = [pk for pk, title in titles.items() if not _all_occur(words, title)]
    quotes = _quotes(words, elsewhere, inputs, texts) if elsewhere else {}
    return {pk: quotes.get(pk, "") for pk in titles if pk in quotes or pk not in elsewhere}


def words_of(text: str) -> list[str]:
    """Return the words of what somebody typed into a search."""
    return valid_text(text[:TEXT_MOST]).split()[:WORDS_MOST]


def all_words(words: Iterable[str], where: Callable[[str], Q]) -> Q:
    """Match all words, each in one of its spellings."""
    either: Iterable[Q] = (reduce(or_, map(where, _cases(word))) for word in words)
    return reduce(and_, either)


def contains(column: str, word: str) -> Q:
    """Match a column, or one of a related table, in which this word occurs."""
    return Q(Contains(F(column), word))


def _cases(word: str) -> set[str]:
    """Return the spellings of a word: `Like` ignores the case of ASCII letters only."""
    return {word} if word.isascii() else {word, word.lower(), word.upper(), word.capitalize()}


def in_output(words: Collection[str], key: str, following: str) -> Q:
    """Match outputs in whose value of this key all words occur.

    Their canonical JSON escapes the value, before the `following` key. An escape may look like a letter of a word, so
    callers that quote a match check the rows again.
    """
    anywhere = all_words(words, lambda word: contains("data", _escaped(word)))
    there = all_words(words, lambda word: Q(Like(F("data"), f'%"{key}":{_pattern(_escaped(word))},"{following}":%')))
    # In this order, whatever the planner thinks that each of the two costs: few outputs contain the words at all.
    return Q(Case(When(anywhere, then=there), default=False, output_field=BooleanField()))


def _escaped(word: str) -> str:
    """Return a word as it stands in canonical JSON."""
    return canonical(word)[1:-1]


def _pattern(text: str) -> str:
    """Return the pattern for `Like` of what contains this text."""
    return f"%{connection.ops.prep_for_like_query(text)}%"


def _any_of(rows: QuerySet[Any]) -> Q:
    """Match conversations that have one of these rows.

    For an EXISTS, PostgreSQL would read all rows of the site at once, as its plan does not reckon with an early end. A
    value it looks for in each conversation, until enough of them are found.
    """
    return Q(IsNull(Subquery(rows.order_by().values("pk")[:1]), False))


def _quotes(
    words: Sequence[str], wanted: Collection[int], inputs: QuerySet[Prompt], texts: QuerySet[Output]
) -> dict[int, str]:
    """Return the first text in each conversation in which all words occur, as a one-line quote."""
    said = inputs.filter(conversation__in=wanted).order_by("conversation", "number")
    answered = texts.filter(conversation__in=wanted).order_by("conversation", "prompt", "position")
    found: dict[int, str] = {}
    for pk, text in chain(
        said.values_list("conversation", "input").iterator(),
        ((pk, json.loads(data)["text"]) for pk, data in answered.values_list("conversation", "data").iterator()),
    ):
        if pk not in found and _all_occur(words, text or ""):
            found[pk] = _quote(text or "", words[0])
    return found


def _all_occur(words: Iterable[str], text: str) -> bool:
    return all(_place(word, text) is not None for word in words)


def _place(word: str, text: str) -> re.Match[str] | None:
    return re.search(re.escape(word), text, re.IGNORECASE)


def _quote(text: str, word: str) -> str:
    """Return the text around the word on one line, with an ellipsis where it is cut."""
    line = " ".join(text.split())
    found = _place(word, line)
    begin = max(found.start() - BEFORE, 0) if found else 0
    begin = line.find(" ", begin - 1) + 1 if begin else 0
    cut = line[begin : begin + LONG]
    return f"{'… ' if begin else ''}{cut}{' …' if begin + LONG < len(line) else ''}"
