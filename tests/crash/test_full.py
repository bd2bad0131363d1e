"""A real worker on a disk that is full for a while."""

from __future__ import annotations

import resource
from pathlib import Path
from urllib.parse import urlsplit

from conversations.models import Prompt, Step
from conversations.verification.stored import verify
from tests.crash.acting import MARKS, began, draining, ended
from tests.crash.processes import wait_for
from tests.crash.site import Site

pytestmark = MARKS


def test_a_process_that_may_write_no_more_loses_nothing(site: Site) -> None:
    """CP34: no file of it may grow; it says so once, waits, and records all it knows when there is space."""
    data = site.folder / "data"
    prompt = site.say("take long")
    worker = draining(site, AGENTSITE_DATA=str(data))
    began(site)
    database = Path(urlsplit(site.url).path)
    before = Step.objects.filter(prompt=prompt).count()
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (len(site.said().encode()) + 100_000, resource.RLIM_INFINITY))
    assert database.stat().st_size > 100_000
    wait_for(lambda: "the disk is full" in site.said(), "the notice", site)
    assert (data / "disk-full").exists()
    assert not Prompt.objects.get(pk=prompt.pk).ended
    assert verify(prompt.conversation_id).problems == []
    assert Step.objects.filter(prompt=prompt).count() >= before
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    prompt = ended(site, prompt)
    assert (prompt.state, prompt.stop_reason) == ("completed", "text")
    assert worker.wait() == 0
    assert site.said().count("the disk is full") == 1
    assert site.effects()["1/0 began"] == 1
    assert not (data / "disk-full").exists()
