"""Where wake-ups and schedules wait for a worker."""

from pathlib import Path

from tests.agentsite.processes import run, variables

ASK = """
import django
django.setup()
from django_q.brokers import get_broker
print(type(get_broker()).__name__)
"""


def test_it_is_the_database(tmp_path: Path) -> None:
    environment = variables(tmp_path, DJANGO_SETTINGS_MODULE="agentsite.settings")
    assert run("-c", ASK, environment=environment).stdout.split() == ["ORM"]
