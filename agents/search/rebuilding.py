"""Keeping the words of rows as their rows are: when one is saved or deleted, and all of them anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import connection, connections, transaction
from django.db.models import Model

from agents.models import Searched, SearchedWord, SearchIndex, WordCount
from agents.search.index import ROWS, drop, lock, put
from agents.search.words import written_as

ROWS_AT_ONCE = 100
"""Rows whose words are written in one transaction: others who save a row meanwhile wait for one at most."""


def tables() -> list[type[Searched]]:
    """Return the tables whose rows can be found."""
    return [model for model in apps.get_models() if issubclass(model, Searched)]


def saved(instance: Searched, **kwargs: Any) -> None:
    """Write down the words of a row that was saved. A receiver of `post_save`."""
    found = instance.searched()
    if found is None:
        drop(instance.collection, instance.pk)
    else:
        put(instance.collection, instance.pk, *found)


def deleted(instance: Searched, **kwargs: Any) -> None:
    """Remove the words of a row that was deleted, by a cascade as well. A receiver of `post_delete`."""
    drop(instance.collection, instance.pk)


def rebuild() -> int:
    """Write the words of all rows anew, as they are now, and return how many rows there are.

    It repairs what was changed past the site: by other programs, or in bulk. The site may run meanwhile.
    """
    written = set(SearchedWord.objects.filter(word=ROWS).values_list("collection", "row"))
    there = {row for model in tables() for row in _write_all(model)}
    for collection, row in written - there:
        drop(collection, row)
    _count_again()
    SearchIndex.objects.update_or_create(pk=1, defaults={"written_as": written_as()})
    return len(there)


def rebuild_if_outdated(using: str = "default", **kwargs: Any) -> None:
    """Write all words anew if the site had another language when they were written. A receiver of `post_migrate`.

    Does nothing while the tables do not exist.
    """
    models: list[type[Model]] = [SearchedWord, WordCount, SearchIndex, *tables()]
    required = {model._meta.db_table for model in models}
    if not required <= set(connections[using].introspection.table_names()):
        return
    if not SearchIndex.objects.filter(written_as=written_as()).exists():
        rebuild()


def _write_all(model: type[Searched]) -> Iterator[tuple[str, int]]:
    """Write the words of all rows of a table. Yields their collections and ids."""
    last, all_ids = 0, model._default_manager.order_by("pk").values_list("pk", flat=True)
    while ids := list(all_ids.filter(pk__gt=last)[:ROWS_AT_ONCE]):
        rows = model._default_manager.filter(pk__in=ids)
        with transaction.atomic():
            lock(row.collection for row in rows.all())
            for row in rows.all():  # as they are now: whoever saves one of them from here on writes after us
                saved(row)
                yield row.collection, row.pk
        last = ids[-1]


def _count_again() -> None:
    """Count the words of all collections, whatever the counts were."""
    counts, words = WordCount._meta.db_table, SearchedWord._meta.db_table
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # SQLite has one writer at a time
            cursor.execute(f"LOCK TABLE {counts} IN SHARE ROW EXCLUSIVE MODE")
        cursor.execute(f"DELETE FROM {counts}")
        cursor.execute(
            f"INSERT INTO {counts} (collection, word, rows)"
            f" SELECT collection, word, count(*) FROM {words} GROUP BY collection, word"
        )
