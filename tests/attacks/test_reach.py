"""Every spelling of HOST that opens the site to the network is recognised as that, however it is written."""

import socket
from pathlib import Path

import pytest

from agentsite import hosts
from tests.agentsite.processes import run, variables

EVERYWHERE = ["0.0.0.0", "0", "00", "0.0", "0x0", "000.0.0.0", "::", "::0", "0::", "0:0:0:0:0:0:0:0", "::0.0.0.0",
              "[::]", "[::0]", "[0.0.0.0]", "[]", "::ffff:0.0.0.0", "::ffff:0:0"]  # fmt: skip
HERE = ["127.0.0.1", "127.1", "localhost", "::1", "[::1]", "::ffff:127.0.0.1"]


def bound(host: str) -> str:
    """The address that the system gives a socket that is bound to this host as the web server does it."""
    host = host.strip("[]")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))  # nothing listens
        address: str = probe.getsockname()[0]
    return address


@pytest.mark.parametrize("host", EVERYWHERE)
def test_whatever_opens_all_addresses_is_everywhere(host: str) -> None:
    assert bound(host) in ("0.0.0.0", "::", "::ffff:0.0.0.0")
    assert hosts.is_everywhere(host)
    assert hosts.from_here(host) == ("::1" if bound(host) == "::" else "127.0.0.1")


@pytest.mark.parametrize("host", [*HERE, "203.0.113.1", "no-such-host.invalid", "*", "0 0", "\0", "é" * 70])
def test_one_address_is_not(host: str) -> None:
    assert not hosts.is_everywhere(host)
    assert hosts.from_here(host) == host.strip("[]")


@pytest.mark.parametrize("host", ["0", "[]", "[::0]"])
def test_it_is_warned_of_and_does_not_start_without_names(host: str, tmp_path: Path) -> None:
    environment = variables(tmp_path, HOST=host)
    refused = run("manage.py", "check", environment=environment)
    assert refused.returncode == 2
    assert "opens the site to the network: set ALLOWED_HOSTS" in refused.stderr
    named = environment | {"ALLOWED_HOSTS": "agents.example"}
    assert f"HOST={host} without AGENTSITE_HTTPS" in run("manage.py", "check", "--deploy", environment=named).stderr
    mail = named | {"EMAIL_HOST": "mail.example", "DEFAULT_FROM_EMAIL": "site@agents.example"}
    assert "set AGENTSITE_URL" in run("manage.py", "check", environment=mail).stderr
