"""Discovery of tools, plugins and services, the way Django finds `admin.py`: by the name of the module they are in.

An app's tools are in its `tools.py`, its plugins in `plugins.py` or `plugin.py`, its services in `services.py`. What
ships with Agentsite is found in the same way.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from agents import plugins as shipped
from agents.engine.errors import RegistryError
from agents.engine.interfaces.app_services import Service
from agents.engine.schema import check_annotation
from agents.engine.tools.plugin import Plugin
from agents.engine.tools.tool import Tool, by_wire_name

NAMES = ("tools", "plugins", "plugin", "services")
"""The modules that are searched, in each package that has them."""


@dataclass(frozen=True)
class Found:
    """The discovered tools and services, sorted by name, and plugins, in the order in which they prepare a round."""

    tools: tuple[Tool, ...]
    plugins: tuple[type[Plugin[Any]], ...]
    services: tuple[Service, ...] = ()

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools that every round is offered; the others are pushed by plugins when their time has come."""
        return tuple(tool for tool in self.tools if tool.offered)


@cache
def installed() -> Found:
    """Return the tools, plugins and services of this site: the shipped ones and those of the installed Django apps.

    Raises RegistryError, see the functions below.
    """
    from django.apps import apps

    packages = [config.name for config in apps.get_app_configs()]
    modules = list(modules_of([*shipped_packages(), *packages]))
    tools, plugins, services = discover_tools(modules), discover_plugins(modules), discover_services(modules)
    return Found(tuple(tools), tuple(plugins), tuple(services))


def installed_tool(name: str) -> Tool | None:
    """Return the installed tool of this name; None if there is none, or if only a plugin offers it, round by round."""
    return next((tool for tool in installed().tools if tool.name == name), None)


def shipped_packages() -> list[str]:
    """Return the names of the packages of plugins that ship with Agentsite."""
    return [found.name for found in pkgutil.iter_modules(shipped.__path__, f"{shipped.__name__}.") if found.ispkg]


def modules_of(packages: Iterable[str]) -> Iterator[ModuleType]:
    """Yield the modules named NAMES, from each package that has them. Raises RegistryError naming a broken one."""
    for package in packages:
        if not hasattr(_import(package), "__path__"):
            continue
        for name in NAMES:
            if find_spec(f"{package}.{name}"):
                yield _import(f"{package}.{name}")


def discover_tools(modules: Iterable[ModuleType]) -> list[Tool]:
    """Return the tools at the top level of these modules, sorted by name.

    Raises RegistryError naming both modules if two tools share a name, or share the form of it that a model sees.
    """
    values = (value for module in modules for value in vars(module).values())
    return list(by_wire_name(value for value in values if isinstance(value, Tool)).values())


def discover_plugins(modules: Iterable[ModuleType]) -> list[type[Plugin[Any]]]:
    """Return the plugins that these modules define, sorted by `order`, then by name.

    A class whose name has a leading underscore is a base class and is left out. Raises RegistryError for a plugin
    without a name, for a state without defaults or that is no JSON, and naming both modules if two plugins share one.
    """
    found: dict[str, type[Plugin[Any]]] = {}
    for plugin in (plugin for module in modules for plugin in _plugins_of(module)):
        if not plugin.name:
            raise RegistryError(f"the plugin {plugin.__module__}.{plugin.__qualname__} has no name")
        try:
            check_annotation(plugin.state_model)
            plugin.state_model()
        except (TypeError, ValidationError) as error:
            raise RegistryError(f"the state of the plugin {plugin.name!r} cannot be kept: {error}") from error
        other = found.setdefault(plugin.name, plugin)
        if other is not plugin:
            named = " and ".join(f"{plugin.name!r} in {each.__module__}" for each in (other, plugin))
            raise RegistryError(f"two plugins share a name: {named}")
    return sorted(found.values(), key=lambda plugin: (plugin.order, plugin.name))


def discover_services(modules: Iterable[ModuleType]) -> list[Service]:
    """Return the services at the top level of these modules, sorted by name.

    Raises RegistryError naming both modules if two of them share a name.
    """
    found: dict[str, Service] = {}
    for service in (value for module in modules for value in vars(module).values() if isinstance(value, Service)):
        if (other := found.setdefault(service.name, service)) is not service:
            named = " and ".join(f"{service.name!r} in {each.owner}" for each in (other, service))
            raise RegistryError(f"two services share a name: {named}")
    return sorted(found.values(), key=lambda service: service.name)


def _plugins_of(module: ModuleType) -> Iterator[type[Plugin[Any]]]:
    """Yield the public plugins that `module` defines itself. Those that it imports belong to another module."""
    for value in vars(module).values():
        own = isinstance(value, type) and value.__module__ == module.__name__ and not value.__name__.startswith("_")
        if own and issubclass(value, Plugin):
            yield value


def _import(name: str) -> ModuleType:
    try:
        return import_module(name)
    except Exception as error:  # whatever a module raises, the message must name the module
        raise RegistryError(f"{name} cannot be imported: {error!r}") from error
