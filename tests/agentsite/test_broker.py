"""Which broker wakes the workers."""

from pathlib import Path

import pytest

from tests.agentsite.processes import run, variables

ASK = """
import django
django.setup()
from django_q.brokers import get_broker
broker = get_broker()
print(type(broker).__name__, broker.ping())
"""


def test_it_is_the_database_by_default(tmp_path: Path) -> None:
    environment = variables(tmp_path, DJANGO_SETTINGS_MODULE="agentsite.settings")
    assert run("-c", ASK, environment=environment).stdout.split() == ["ORM", "True"]


@pytest.mark.redis
def test_it_is_redis_where_an_address_is_given(tmp_path: Path, redis_url: str) -> None:
    environment = variables(tmp_path, DJANGO_SETTINGS_MODULE="agentsite.settings", REDIS_URL=redis_url)
    assert run("-c", ASK, environment=environment).stdout.split() == ["Redis", "True"]
