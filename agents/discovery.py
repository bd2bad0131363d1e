"""Discovery of tools, plugins, policies and services, as Django finds `admin.py`: by the name of the defining module.

An app's tools are in its `tools.py`, its plugins in `plugins.py` or `plugin.py`, its policies in `policies.py`, and its
services in `services.py`. What ships with Agentsite is found in the same way.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from agents import plugins as shipped
from agents.engine.agent.offered import offered
from agents.engine.errors import RegistryError
from agents.engine.interfaces.app_services import Service
from agents.engine.runtime.policy import Registered
from agents.engine.schema import check_annotation
from agents.engine.tools.plugin import Plugin
from agents.engine.tools.tool import Tool, by_category, by_wire_name

NAMES = ("tools", "plugins", "plugin", "policies", "services")
"""The modules that are searched, in each package that has them."""
NAME_MOST = 100
"""Maximum length of the name of a policy, in characters."""


@dataclass(frozen=True)
class Found:
    """The discovered tools, policies and services by name, and plugins, in the order in which they prepare a round."""

    tools: tuple[Tool, ...]
    plugins: tuple[type[Plugin[Any]], ...]
    policies: tuple[Registered, ...] = ()
    services: tuple[Service, ...] = ()

    @cached_property
    def offered(self) -> tuple[Tool, ...]:
        """What every round is offered: tools, and the policies that say so, by category.

        Plugins push the other tools in their time. Raises what `by_wire_name` raises, for those too.
        """
        known = by_wire_name([*self.tools, *(offered(each) for each in self.policies if each.offered)])
        return tuple(by_category(tool for tool in known.values() if tool.offered))


@cache
def installed() -> Found:
    """Return what this site has: what ships with Agentsite, and what the installed Django apps define.

    Raises RegistryError, see the functions below; also if a tool and a policy share a name.
    """
    from django.apps import apps

    packages = [config.name for config in apps.get_app_configs()]
    modules = list(modules_of([*shipped_packages(), *packages]))
    found = Found(
        tuple(discover_tools(modules)),
        tuple(discover_plugins(modules)),
        tuple(discover_policies(modules)),
        tuple(discover_services(modules)),
    )
    for policy in found.policies:
        if tool := next((tool for tool in found.tools if tool.name == policy.name), None):
            owners = f"the tool in {tool.owner} and the policy {policy.owner}"
            raise RegistryError(f"a tool and a policy share the name {policy.name!r}: {owners}")
    _ = found.offered  # raises if a model would see one name for two of them
    return found


_added: dict[str, Registered] = {}


def add(policy: Registered) -> None:
    """Add a policy that is not discovered: one of a kind, whose name begins with that, such as `workflow:travel`.

    Call it from `AppConfig.ready()`, before any turn runs. Raises RegistryError if the name is taken.
    """
    if other := _added.get(policy.name):
        raise RegistryError(f"{policy.name!r} is added twice: by {other.owner} and by {policy.owner}")
    _added[policy.name] = policy


def remove(name: str) -> None:
    """Undo `add`, for tests."""
    del _added[name]


def added() -> tuple[Registered, ...]:
    """Return the policies that were added."""
    return tuple(_added.values())


def installed_policy(name: str) -> Registered | None:
    """Return the policy of this name, of an app or added; None if there is none."""
    found = (policy for policy in installed().policies if policy.name == name)
    return _added.get(name) or next(found, None)


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
    tools = (value for value in values if isinstance(value, Tool))
    return list(by_wire_name(sorted(tools, key=lambda tool: tool.name)).values())


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


def discover_policies(modules: Iterable[ModuleType]) -> list[Registered]:
    """Return the policies at the top level of these modules, sorted by name, each with its place as its owner.

    Raises RegistryError for a name that is too long, and naming both places if two share one.
    """
    found: dict[str, tuple[Registered, Registered]] = {}  # as it was made, and with its owner
    for module in modules:
        for variable, made in vars(module).items():
            if not isinstance(made, Registered):
                continue
            owned = replace(made, owner=f"{module.__name__}.{variable}")
            if len(made.name) > NAME_MOST:
                raise RegistryError(f"the name of the policy {owned.owner} may have at most {NAME_MOST} characters")
            before, other = found.setdefault(made.name, (made, owned))
            if before is not made:  # the same policy, imported into another module, is not a second one
                raise RegistryError(f"two policies share the name {made.name!r}: {other.owner} and {owned.owner}")
    return [owned for _, (_, owned) in sorted(found.items())]


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
