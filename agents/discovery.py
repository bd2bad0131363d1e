"""How tools and plugins are found, the way Django finds `admin.py`: by standing in a module of the right name.

An app's tools are in its `tools.py`, its plugins in `plugins.py` or `plugin.py`; so are those that we ship.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from agents import plugins as shipped
from agents.engine.errors import RegistryError
from agents.engine.tools.plugin import Plugin
from agents.engine.tools.tool import Tool, wire_name

NAMES = ("tools", "plugins", "plugin")
"""The modules that are looked into, where a package has them."""


@dataclass(frozen=True)
class Found:
    """Tools by name, and plugins in the order in which they prepare a round."""

    tools: tuple[Tool, ...]
    plugins: tuple[type[Plugin], ...]


@cache
def installed() -> Found:
    """What the plugins we ship and the installed Django apps have. Raises RegistryError, see the functions below."""
    from django.apps import apps

    packages = [config.name for config in apps.get_app_configs()]
    modules = list(modules_of([*shipped_packages(), *packages]))
    return Found(tuple(discover_tools(modules)), tuple(discover_plugins(modules)))


def installed_tool(name: str) -> Tool | None:
    """The installed tool of this name; None where there is none, or only a plugin offers it, round by round."""
    return next((tool for tool in installed().tools if tool.name == name), None)


def shipped_packages() -> list[str]:
    """The packages of the plugins that we ship."""
    return [found.name for found in pkgutil.iter_modules(shipped.__path__, f"{shipped.__name__}.") if found.ispkg]


def modules_of(packages: Iterable[str], names: Iterable[str] = NAMES) -> Iterator[ModuleType]:
    """The modules of these names in the packages that have them. Raises RegistryError naming one that is broken."""
    for package in packages:
        if not hasattr(_imported(package), "__path__"):
            continue
        for name in names:
            if find_spec(f"{package}.{name}"):
                yield _imported(f"{package}.{name}")


def discover_tools(modules: Iterable[ModuleType]) -> list[Tool]:
    """The tools at the top of these modules, by name.

    Raises RegistryError naming both modules where two tools share a name, or the form of it that a model reads.
    """
    found: dict[str, tuple[Tool, str]] = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Tool):
                tool, owner = found.setdefault(wire_name(value.name), (value, module.__name__))
                if tool is not value:  # the same tool, imported elsewhere, is no second one
                    raise _clash("tool", (tool.name, owner), (value.name, module.__name__))
    return sorted((tool for tool, _ in found.values()), key=lambda tool: tool.name)


def discover_plugins(modules: Iterable[ModuleType]) -> list[type[Plugin]]:
    """The plugins that these modules define, by `order`, then by name. One with a leading underscore is only a base.

    Raises RegistryError for a plugin without a name, and naming both modules where two share one.
    """
    found: dict[str, type[Plugin]] = {}
    for plugin in (plugin for module in modules for plugin in _plugins_of(module)):
        if not plugin.name:
            raise RegistryError(f"the plugin {plugin.__module__}.{plugin.__qualname__} has no name")
        other = found.setdefault(plugin.name, plugin)
        if other is not plugin:
            raise _clash("plugin", (other.name, other.__module__), (plugin.name, plugin.__module__))
    return sorted(found.values(), key=lambda plugin: (plugin.order, plugin.name))


def _plugins_of(module: ModuleType) -> Iterator[type[Plugin]]:
    """The public plugins that `module` defines itself: what it imports belongs to another."""
    for value in vars(module).values():
        own = isinstance(value, type) and value.__module__ == module.__name__ and not value.__name__.startswith("_")
        if own and issubclass(value, Plugin):
            yield value


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except Exception as error:  # whatever a module raises, its name must be said
        raise RegistryError(f"{name} cannot be imported: {error!r}") from error


def _clash(what: str, first: tuple[str, str], second: tuple[str, str]) -> RegistryError:
    """Each of the two as (name, module)."""
    named = " and ".join(f"{name!r} in {module}" for name, module in (first, second))
    return RegistryError(f"two owners of one {what}: {named}")
