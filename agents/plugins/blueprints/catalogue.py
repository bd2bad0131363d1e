"""Which blueprints a site has, who may be told of which, and which fit a text. All that is read of the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agents.engine.ledger import digest
from agents.plugins.blueprints.telling import fitting

if TYPE_CHECKING:
    from agents.models import Blueprint

BEST = 5
"""How many are looked at for a place in a round."""


@dataclass(frozen=True)
class Seen:
    """The blueprints that a person's agent may be told of. `version` changes whenever one of them does."""

    ids: frozenset[int]
    version: str


@dataclass(frozen=True)
class Catalogue:
    """The enabled blueprints of a site: of each id its version, and of those that are only for groups, which."""

    versions: Mapping[int, int]
    groups: Mapping[int, frozenset[int]]
    _seen: dict[frozenset[int], Seen] = field(default_factory=dict, compare=False, repr=False)

    def seen_by(self, groups: frozenset[int]) -> Seen:
        """Return those for people in these groups. It is worked out once for all who are in the same."""
        if groups not in self._seen:
            ids = frozenset(id for id in self.versions if id not in self.groups or self.groups[id] & groups)
            self._seen[groups] = Seen(ids, digest([[id, self.versions[id]] for id in sorted(ids)]))
        return self._seen[groups]


def read_catalogue() -> Catalogue:
    """Return the catalogue as it is now."""
    from agents.models import Blueprint  # tools are declared without Django; this runs only on a site

    enabled = list(Blueprint.objects.filter(enabled=True).values_list("pk", "version", "restricted"))
    groups: dict[int, set[int]] = {id: set() for id, _, restricted in enabled if restricted}
    if enabled:
        for blueprint, group in Blueprint.groups.through.objects.values_list("blueprint_id", "group_id"):
            groups.setdefault(blueprint, set()).add(group)
    versions = {id: version for id, version, _ in enabled}
    return Catalogue(versions, {blueprint: frozenset(of) for blueprint, of in groups.items()})


def groups_of(user: int) -> frozenset[int]:
    """Return the groups that a person is in."""
    from django.contrib.auth.models import Group

    return frozenset(Group.objects.filter(user=user).values_list("pk", flat=True))


def find(text: str, among: Collection[int], tokens: int) -> list[int]:
    """Return the ids of those of these blueprints that fit a text best and have room in so many tokens, best first."""
    from agents.models import Blueprint
    from agents.search.index import best

    matches = best(Blueprint.COLLECTION, text, BEST, among)
    return [blueprint.pk for blueprint in fitting(read(tuple(match.row for match in matches)), tokens)]


def read(ids: tuple[int, ...]) -> list[Blueprint]:
    """Return these blueprints as they are now, in this order. One that is gone is left out."""
    from agents.models import Blueprint

    there = Blueprint.objects.in_bulk(ids)
    return [there[id] for id in ids if id in there]
