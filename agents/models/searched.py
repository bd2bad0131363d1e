"""What the search goes by: the words of each row that can be found, and in how many rows each word stands."""

from __future__ import annotations

from typing import Any

from django.db import models, transaction

COLLECTION_MOST = 64
"""Characters of a collection's name."""
WORD_MOST = 64
"""Characters of a word that count: longer ones are data, such as keys and pictures in letters."""


class Searched(models.Model):
    """The base of tables whose rows can be found. `agents.search` writes down their words when they are saved.

    `QuerySet.update`, `bulk_create` and other programs save nothing in this sense: `manage.py rebuild_search` then.
    """

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save it together with its words: all or nothing."""
        with transaction.atomic():
            super().save(*args, **kwargs)

    @property
    def collection(self) -> str:
        """The collection that it is found in, and no other. It never changes, and no other table has it."""
        raise NotImplementedError

    def searched(self) -> tuple[str, str] | None:
        """Return the title and the text that it is found by; None while it is not to be found."""
        raise NotImplementedError


class SearchedWord(models.Model):
    """A word of a row. Each row has the word "" as well, so that rows can be counted like words."""

    pk = models.CompositePrimaryKey("collection", "word", "row")
    collection = models.CharField(max_length=COLLECTION_MOST)
    word = models.CharField(max_length=WORD_MOST)
    row = models.BigIntegerField()
    in_title = models.BooleanField()

    class Meta:
        indexes = [models.Index(fields=["collection", "row"], name="words_of_a_row")]

    def __str__(self) -> str:
        return f"{self.word} in {self.collection} {self.row}"


class WordCount(models.Model):
    """In how many rows of a collection a word stands; of the word "", how many rows there are."""

    pk = models.CompositePrimaryKey("collection", "word")
    collection = models.CharField(max_length=COLLECTION_MOST)
    word = models.CharField(max_length=WORD_MOST)
    rows = models.IntegerField()

    def __str__(self) -> str:
        return f"{self.word} in {self.rows} of {self.collection}"


class SearchIndex(models.Model):
    """How all words were written, in one row: `agents.search.words.written_as` at that time."""

    written_as = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.written_as
