"""Health checks while workers come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

from tests.crash.acting import MARKS, Start, served
from tests.crash.processes import wait_for
from tests.crash.site import Site

pytestmark = MARKS


@contextmanager
def web(site: Site, **more: str) -> Iterator[Callable[[], int]]:
    """The web server; what it gives is the status of /healthz."""
    with served(site, **more) as (_, port):

        def healthz() -> int:
            request = HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                request.request("GET", "/healthz")
                return request.getresponse().status
            finally:
                request.close()

        yield healthz


def test_healthz_says_503_while_nobody_works(site: Site, start: Start) -> None:
    short = {"AGENTSITE_BEAT_SECONDS": "5"}
    with web(site, **short) as healthz:
        wait_for(lambda: healthz() == 503, "503 before the first worker", site)
        worker = start(**short)
        wait_for(lambda: healthz() == 200, "200 with a worker", site)
        worker.stop()
        assert healthz() == 503
        worker = start(**short)
        wait_for(lambda: healthz() == 200, "200 with a second worker", site)
        worker.kill()
        wait_for(lambda: healthz() == 503, "503 after a kill", site)
