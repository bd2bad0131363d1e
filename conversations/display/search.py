"""Searching conversations: over their titles, and over what was said in them.

All words must stand in one title, one message or one text of the agent. Ledgers are not searched, nor what tools
returned. The newest conversations come first, and the database stops at as many as are asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import reduce
from itertools import chain
from operator import and_, or_
from typing import Any

from django.db import connection
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.lookups import Lookup

from agents.engine.ledger import canonical, valid_text
from conversations.models import Conversation, Output, Prompt

TEXT_MOST, WORDS_MOST = 200, 8
"""Characters and words of a search; further ones are not looked at."""
BEFORE, LONG = 12, 120
"""Characters of a quote before the first word that was found, and in all."""


class Like(Lookup):
    """`column LIKE pattern`, whatever the case of ASCII letters; a backslash before what is no wildcard."""

    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        """See Lookup."""
        column, values = self.process_lhs(compiler, connection)
        like = "ILIKE" if connection.vendor == "postgresql" else "LIKE"
        return rf"{column} {like} %s ESCAPE '\'", (*values, self.rhs)


def search(conversations: QuerySet[Conversation], text: str, most: int) -> dict[int, str]:
    """The newest of these conversations, at most so many, in which all words of the text were found.

    By their ids, in order; each with the place that matches, "" where that is the title.
    """
    words = valid_text(text[:TEXT_MOST]).split()[:WORDS_MOST]
    if not words:
        return {}
    inputs = Prompt.objects.filter(_all(words, _in_input), visible=True)
    texts = Output.objects.filter(_all(words, _in_text), type="text", prompt__visible=True)
    of_this = {"conversation": OuterRef("pk")}
    said = Exists(inputs.filter(**of_this)) | Exists(texts.filter(**of_this))
    found = conversations.filter(_all(words, _in_title) | Q(said)).order_by("-updated_at")[:most]
    titles = dict(found.values_list("pk", "title"))
    elsewhere = [pk for pk, title in titles.items() if not _stand_in(words, title)]
    quotes = _quotes(words, elsewhere, inputs, texts) if elsewhere else {}
    return {pk: quotes.get(pk, "") for pk in titles if pk in quotes or pk not in elsewhere}


def _all(words: Iterable[str], where: Callable[[str], Q]) -> Q:
    """Each word, in one of the ways in which it may be written."""
    either: Iterable[Q] = (reduce(or_, map(where, _cases(word))) for word in words)
    return reduce(and_, either)


def _cases(word: str) -> set[str]:
    """How a word may stand: SQLite knows small and capital letters of ASCII alone."""
    return {word} if word.isascii() else {word, word.lower(), word.upper(), word.capitalize()}


def _in_title(word: str) -> Q:
    return Q(title__icontains=word)


def _in_input(word: str) -> Q:
    return Q(input__icontains=word)


def _in_text(word: str) -> Q:
    """In the text of an output, which stands between these two in its canonical JSON, escaped as there.

    An escape may look like a letter of the word, so who gets rows by this looks again.
    """
    escaped = connection.ops.prep_for_like_query(canonical(word)[1:-1])
    return Q(Like(F("data"), f'%"text":"%{escaped}%","type":"text"%'))


def _quotes(
    words: Sequence[str], wanted: Collection[int], inputs: QuerySet[Prompt], texts: QuerySet[Output]
) -> dict[int, str]:
    """The first place in each conversation where all words stand, as a line."""
    said = inputs.filter(conversation__in=wanted).order_by("conversation", "number")
    answered = texts.filter(conversation__in=wanted).order_by("conversation", "prompt", "position")
    found: dict[int, str] = {}
    for pk, text in chain(
        said.values_list("conversation", "input").iterator(),
        ((pk, json.loads(data)["text"]) for pk, data in answered.values_list("conversation", "data").iterator()),
    ):
        if pk not in found and _stand_in(words, text or ""):
            found[pk] = _quote(text or "", words[0])
    return found


def _stand_in(words: Iterable[str], text: str) -> bool:
    return all(_place(word, text) is not None for word in words)


def _place(word: str, text: str) -> re.Match[str] | None:
    return re.search(re.escape(word), text, re.IGNORECASE)


def _quote(text: str, word: str) -> str:
    """The place of the word on one line, with an ellipsis where there is more."""
    line = " ".join(text.split())
    found = _place(word, line)
    begin = max(found.start() - BEFORE, 0) if found else 0
    begin = line.find(" ", begin - 1) + 1 if begin else 0
    cut = line[begin : begin + LONG]
    return f"{'… ' if begin else ''}{cut}{' …' if begin + LONG < len(line) else ''}"
