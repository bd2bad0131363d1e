"""Many approvals that wait, in the admin's list."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.conversations.support import asking, person

pytestmark = pytest.mark.django_db


def test_the_list_asks_the_database_as_often_for_many_as_for_few(client: Client) -> None:
    """I7: ten thousand that wait cost a page what three cost."""
    client.force_login(person("chief", is_superuser=True, is_staff=True))
    owner, asked = person("ann"), []
    for more in (3, 30):
        for number in range(more):
            asking(owner if number % 2 else person(f"ann-{more}-{number}"), f"echo {number}")
        with CaptureQueriesContext(connection) as queries:
            page = client.get("/admin/conversations/approval/").text
        asked.append(len(queries))
        assert page.count('<td class="field-waits') == sum((3, 30)[: len(asked)])
    assert asked[0] == asked[1]
