"""Discovery of workflows, as Django finds `admin.py`: in the module `workflows.py` of each app, and what ships here."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from agents.engine.errors import RegistryError
from workflows import shipped
from workflows.definition import Workflow

MODULE = "workflows"
"""The name of the module in which an app defines workflows."""


@cache
def installed() -> dict[str, Workflow]:
    """Return the workflows of this site by name: by the order of their categories, then by title.

    Raises RegistryError for a module that cannot be imported, and naming both places if two workflows share a name.
    """
    from django.apps import apps

    packages = [found.name for found in pkgutil.iter_modules(shipped.__path__, f"{shipped.__name__}.") if found.ispkg]
    found = discover(_modules_of([*packages, *(config.name for config in apps.get_app_configs())]))
    ordered = sorted(
        found, key=lambda each: (each.category.order, each.category.name, each.category.id, each.title, each.name)
    )
    return {each.name: each for each in ordered}


def discover(modules: Iterable[ModuleType]) -> list[Workflow]:
    """Return the workflows at the top level of these modules. Raises RegistryError if two share a name."""
    found: dict[str, Workflow] = {}
    for each in (value for module in modules for value in vars(module).values() if isinstance(value, Workflow)):
        if (other := found.setdefault(each.name, each)) is not each:
            raise RegistryError(f"two workflows share the name {each.name!r}: {other.owner} and {each.owner}")
    return list(found.values())


def _modules_of(packages: Iterable[str]) -> Iterator[ModuleType]:
    for package in packages:
        if find_spec(name := f"{package}.{MODULE}"):
            try:
                yield import_module(name)
            except Exception as error:  # whatever a module raises, the message must name the module
                raise RegistryError(f"{name} cannot be imported: {error!r}") from error
