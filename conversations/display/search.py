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
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.lookups import Lookup

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


def search(conversations: QuerySet[Conversation], text: str, most: int) -> dict[int, str]:
    """Return the newest of these conversations that match all words of the text, at most `most`.

    By id, in order; each with a quote of the match, "" if the title matches.
    """
    words = words_of(text)
    if not words:
        return {}
    inputs = Prompt.objects.filter(all_words(words, partial(contains, "input")), visible=True)
    in_texts = all_words(words, lambda word: in_output(word, "text", "type"))
    texts = Output.objects.filter(in_texts, type="text", prompt__visible=True)
    of_this = {"conversation": OuterRef("pk")}
    in_text = Exists(inputs.filter(**of_this)) | Exists(texts.filter(**of_this))
    found = conversations.filter(all_words(words, partial(contains, "title")) | Q(in_text)).order_by("-updated_at")[
        :most
    ]
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
    return Q(Like(F(column), f"%{connection.ops.prep_for_like_query(word)}%"))


def _cases(word: str) -> set[str]:
    """Return the spellings of a word: `Like` ignores the case of ASCII letters only."""
    return {word} if word.isascii() else {word, word.lower(), word.upper(), word.capitalize()}


def in_output(word: str, key: str, following: str) -> Q:
    """Match the value of this key of an output. Its canonical JSON escapes the text, before the `following` key.

    An escape may look like a letter of the word, so callers that quote a match check the rows again.
    """
    escaped = connection.ops.prep_for_like_query(canonical(word)[1:-1])
    return Q(Like(F("data"), f'%"{key}":%{escaped}%,"{following}":%'))


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
