"""What tests of /v1's callers share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from django.db import connections

from conversations.accounts.counts import COUNTS
from conversations.accounts.passthrough import SiteCaller, reader


@pytest.fixture
def caller(transactional_db: None) -> Iterator[SiteCaller]:
    """The callers of this site. What is counted is written before the tables are emptied."""
    yield SiteCaller({"fast": "small-1"})
    COUNTS.flush()
    asyncio.run(reader(connections.close_all))
