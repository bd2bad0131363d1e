import pytest
from django.core.checks import Tags, run_checks
from django.test import override_settings

from agents.plugins.shell import probe

pytestmark = pytest.mark.usefixtures("machine")


def test_check_deploy_warns_where_commands_are_not_sandboxed(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "why_not", lambda: "because of it")
    found = [m for m in run_checks(tags=[Tags.security], include_deployment_checks=True) if m.id == "agents.W001"]
    assert len(found) == (machine == "unboxed")
    assert all(message.hint and "bubblewrap" in message.hint and "because of it" in message.hint for message in found)


@pytest.mark.parametrize("user", [0, 1000])
def test_check_deploy_warns_of_root(user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    found = [m for m in run_checks(tags=[Tags.security], include_deployment_checks=True) if m.id == "agents.W002"]
    assert bool(found) is (user == 0)


def test_a_plain_check_does_not_ask(machine: str) -> None:
    assert not [m for m in run_checks(tags=[Tags.security]) if m.id == "agents.W001"]


@pytest.mark.parametrize(("folder", "wrong"), [("/usr/local/agentsite/var", True), ("/srv/agentsite/var", False)])
def test_data_among_the_programs_is_an_error(folder: str, wrong: bool) -> None:
    with override_settings(AGENTSITE_DATA=folder):
        found = [m for m in run_checks(tags=[Tags.security]) if m.id == "agents.E001"]
    assert bool(found) is wrong
