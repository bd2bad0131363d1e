"""A receiver on this machine, to which the setting lets the site send."""

from collections.abc import Iterator
from ipaddress import ip_network

import pytest

from tests.conversations.notifications.webhooks.receiver import Receiver, receiving


@pytest.fixture
def receiver(settings: object) -> Iterator[Receiver]:
    """A receiver that the site may send to."""
    settings.AGENTSITE_WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]  # type: ignore[attr-defined]
    with receiving() as found:
        yield found
