"""`compose.yaml` and `Dockerfile`, which no machine of ours can run: they hang together, and name what there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

from tests.agentsite.processes import ROOT
from tests.test_docs import settings_read

TEXT = (ROOT / "compose.yaml").read_text(encoding="utf-8")
SERVICES: dict[str, Any] = yaml.safe_load(TEXT)["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
OTHERS = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"}
"""Variables of the database's image."""
SECRETS = ("SECRET_KEY", "PASSWORD", "API_KEY")


def commands() -> Iterator[str]:
    yield from re.findall(r"^CMD (.+)$", DOCKERFILE, re.MULTILINE)
    yield from (service["command"] for service in SERVICES.values() if "command" in service)


def test_it_is_the_topology_that_the_page_tells() -> None:
    assert set(SERVICES) == {"prepare", "web", "worker-1", "worker-2", "postgres"}
    assert (
        SERVICES["worker-1"]["environment"]["AGENTSITE_HOST"] != SERVICES["worker-2"]["environment"]["AGENTSITE_HOST"]
    )


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_names_only_what_there_is(name: str) -> None:
    """Settings that the site reads, services that are there and say when they are ready, volumes that are declared."""
    service = SERVICES[name]
    assert set(service.get("environment", {})) <= settings_read() | OTHERS
    for other, wanted in service.get("depends_on", {}).items():
        ready = {"service_healthy": "healthcheck", "service_completed_successfully": "command"}
        assert ready[wanted["condition"]] in SERVICES[other]
    for volume in service.get("volumes", ()):
        assert volume.partition(":")[0] in yaml.safe_load(TEXT)["volumes"]


def test_its_commands_are_there() -> None:
    told = " ".join(commands()).replace('", "', " ")
    assert set(re.findall(r"manage\.py (\w+)", told)) <= set(get_commands())
    assert re.findall(r"manage\.py (\w+)", told)
    assert {name for name in re.findall(r"-m ([\w.]+)", told) if find_spec(name) is None} == set()


def test_nothing_secret_is_in_it_and_no_registry_is_named() -> None:
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            assert not name.endswith(SECRETS) or str(value).startswith("${"), name
    images = [service["image"] for service in SERVICES.values() if "image" in service]
    images += re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert [image for image in images if "/" in image] == []


def test_what_the_image_copies_is_there() -> None:
    copied = [part for line in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE) for part in line.split()]
    assert [part for part in copied if not (ROOT / part).exists()] == []
    assert {"manage.py", "agentsite", "agents", "conversations", "templates"} <= set(copied)
