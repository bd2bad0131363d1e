import socket
import subprocess
import sys
import types
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from agents import Action, Context, Step, discovery, policy, registry
from agents.discovery import (
    discover_plugins,
    discover_policies,
    discover_services,
    discover_tools,
    modules_of,
    shipped_packages,
)
from agents.engine import run
from agents.engine.errors import RegistryError
from agents.engine.interfaces.app_services import Service, service
from agents.engine.runtime.policy import Registered
from agents.engine.tools.plugin import Plugin
from agents.engine.tools.tool import Tool, tool
from tests.engine.support import ScriptedProvider, says


def module(name: str, **content: Any) -> ModuleType:
    made = ModuleType(name)
    for value in content.values():
        if isinstance(value, type) and value is not Plugin:
            value.__module__ = name
    vars(made).update(content)
    return made


def made(name: str, owner: str = "one.tools") -> Tool:
    def function(call: Any) -> None:
        """A tool."""

    function.__module__ = owner
    return tool(name)(function)


def plugin(name: str, order: int = 100, base: type[Plugin[Any]] = Plugin) -> type[Plugin[Any]]:
    return type("Made", (base,), {"name": name, "order": order})


def test_what_we_ship_is_found() -> None:
    names = [found.name for found in discover_tools(modules_of(shipped_packages()))]
    assert names == sorted(names)
    assert {"files.list", "files.read", "shell.run"} <= set(names)


def test_the_installed_apps_tools_are_found_with_them() -> None:
    assert {"files.list", "files.read", "shell.run"} <= {found.name for found in discovery.installed().tools}


def test_tools_come_by_name_and_one_that_is_imported_elsewhere_once() -> None:
    b, a = made("b"), made("a")
    assert discover_tools([module("one.tools", x=b, y=a), module("two.tools", again=b, other=1)]) == [a, b]


@pytest.mark.parametrize("rival", ["mail.send", "mail_send"])
def test_two_tools_of_one_name_are_refused_naming_both_owners(rival: str) -> None:
    modules = [module("one.tools", x=made("mail.send")), module("two.tools", x=made(rival, "two.tools"))]
    with pytest.raises(RegistryError, match=rf"'mail.send' in one.tools and '{rival}' in two.tools"):
        discover_tools(modules)


def program(name: str, **more: Any) -> Registered:
    @policy(name, **more)
    async def act(action: Action, ctx: Context) -> list[Step]:
        """Do something."""
        return ctx.done()

    return act


def test_policies_come_by_name_with_their_place_and_one_that_is_imported_elsewhere_once() -> None:
    b, a = program("b"), program("a", title="A thing")
    found = discover_policies([module("one.policies", x=b, y=a), module("two.policies", again=b, other=1)])
    assert [(each.name, each.title, each.owner) for each in found] == [
        ("a", "A thing", "one.policies.y"),
        ("b", "b", "one.policies.x"),
    ]


def test_two_policies_of_one_name_are_refused_naming_both_places() -> None:
    modules = [module("one.policies", plan=program("plan")), module("two.policies", other=program("plan"))]
    with pytest.raises(RegistryError, match=r"'plan': one\.policies\.plan and two\.policies\.other"):
        discover_policies(modules)


def test_the_name_of_a_policy_fits_its_column() -> None:
    assert discover_policies([module("one.policies", plan=program("p" * 100))])
    with pytest.raises(RegistryError, match=r"one\.policies\.plan may have at most 100 characters"):
        discover_policies([module("one.policies", plan=program("p" * 101))])


def test_a_tool_and_a_policy_of_one_name_stop_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [module("one.tools", x=made("mail.send")), module("two.policies", y=program("mail.send"))]
    monkeypatch.setattr(discovery, "modules_of", lambda packages: modules)
    with pytest.raises(RegistryError, match=r"'mail\.send': the tool in one\.tools and the policy two\.policies\.y"):
        discovery.installed.__wrapped__()


def test_models_are_offered_only_policies_that_say_so() -> None:
    found = discovery.Found((made("b"),), (), (program("a", offered=True), program("c")))
    assert [each.name for each in found.offered] == ["a", "b"]


def test_a_policy_that_a_model_would_see_under_a_tools_name_is_refused() -> None:
    found = discovery.Found((made("mail.send"),), (), (program("mail_send", offered=True),))
    with pytest.raises(RegistryError, match=r"'mail_send', as a model sees it: 'mail.send' in one\.tools and"):
        _ = found.offered


def test_plugins_come_by_order_then_by_name() -> None:
    last, b, a = plugin("0", 200), plugin("b"), plugin("a")
    modules = [module("one.plugins", last=last, b=b, imported=Plugin), module("two.plugin", a=a)]
    assert discover_plugins(modules) == [a, b, last]


def test_a_base_is_no_plugin() -> None:
    base = type("_Base", (Plugin,), {})
    child = plugin("child", base=base)
    assert discover_plugins([module("one.plugins", base=base, child=child)]) == [child]


def test_two_plugins_of_one_name_are_refused_naming_both_owners() -> None:
    modules = [module("one.plugins", x=plugin("skills")), module("two.plugins", x=plugin("skills"))]
    with pytest.raises(RegistryError, match=r"'skills' in one.plugins and 'skills' in two.plugins"):
        discover_plugins(modules)


def test_a_plugin_without_a_name_is_refused() -> None:
    with pytest.raises(RegistryError, match=r"one\.plugins\.Made has no name"):
        discover_plugins([module("one.plugins", x=plugin(""))])


class NeedsOne(BaseModel):
    one: int


class HoldsOne(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    one: socket.socket | None = None


@pytest.mark.parametrize("state", [NeedsOne, HoldsOne])
def test_a_state_that_could_not_be_kept_is_refused(state: type[BaseModel]) -> None:
    """A field without a default, or one that is no JSON (S40)."""
    stateful = types.new_class("Made", (Plugin[state],), exec_body=lambda body: body.update(name="stateful"))  # type: ignore[valid-type]
    with pytest.raises(RegistryError, match="the state of the plugin 'stateful' cannot be kept: "):
        discover_plugins([module("one.plugins", x=stateful)])


def test_services_come_by_name_and_two_of_one_name_are_refused_naming_both_owners() -> None:
    def made_in(owner: str, name: str) -> Service:
        def factory() -> object:
            return owner

        factory.__module__ = owner
        return service(name)(factory)

    mail, clock = made_in("one.services", "mail"), made_in("one.services", "clock")
    modules = [module("one.services", mail=mail, clock=clock), module("two.services", again=mail, other=5)]
    assert discover_services(modules) == [clock, mail]
    modules.append(module("three.services", mine=made_in("three.services", "mail")))
    with pytest.raises(RegistryError, match=r"'mail' in one\.services and 'mail' in three\.services"):
        discover_services(modules)


async def test_what_a_plugin_pushes_is_never_offered_by_accident(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is registered and listed like any other, and its names are checked; the site's agent does not offer it."""
    pushed = tool("basket.order", offered=False)(made("basket.order").function)
    monkeypatch.setattr(discovery, "installed", lambda: discovery.Found((made("mail.send"), pushed), ()))
    provider = ScriptedProvider([says("Done.")])
    monkeypatch.setattr(registry, "provider", lambda: provider)
    policies = registry.policies.__wrapped__()
    await run("agent", {"text": "go"}, policies)
    assert [each.name for each in provider.asked[0].tools] == ["mail_send"]
    assert policies.get("basket.order")


def test_only_the_modules_a_package_has_are_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, monkeypatch, "has_tools", tools="x = 1")
    package(tmp_path, monkeypatch, "has_none")
    (tmp_path / "no_package.py").touch()
    found = modules_of(["has_none", "no_package", "has_tools"])
    assert [each.__name__ for each in found] == ["has_tools.tools"]


def test_a_module_that_does_not_import_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, monkeypatch, "broken_app", tools="import does_not_exist_anywhere")
    with pytest.raises(RegistryError, match=r"broken_app\.tools cannot be imported: .*does_not_exist_anywhere"):
        list(modules_of(["broken_app"]))


def package(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, **modules: str) -> None:
    (folder / name).mkdir()
    for module, text in {"__init__": "", **modules}.items():
        (folder / name / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)


FACE = """
import sys
from agents import Plugin, Risk, Round, ToolCall, register_output, tool
import agents
from agents.discovery import discover_tools, modules_of, shipped_packages
assert discover_tools(modules_of(shipped_packages()))
assert not any(name.partition(".")[0] == "django" for name in sys.modules)
try:
    agents.nothing
except AttributeError:
    pass
"""

LIGHT = """
import sys
import agents.plugins.shell.supervise
assert not {"pydantic", "asyncio", "django"} & set(sys.modules)
"""


@pytest.mark.parametrize("program", [FACE, LIGHT], ids=["the public face needs no Django", "the supervisor is light"])
def test_a_fresh_process(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
