"""`/healthz`: whether the site can do its work, for monitors and for `serve`."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, JsonResponse

from conversations.journal import claimable
from conversations.models import Worker
from conversations.worker.clock import database_time


def healthz(request: HttpRequest) -> JsonResponse:
    """200 while the database answers and a worker's beat is younger than the setting; 503 with the reason otherwise."""
    report, ok = _report()
    response = JsonResponse({"ok": ok, **report}, status=200 if ok else 503)
    response._has_been_logged = True  # type: ignore[attr-defined]  # a 503 is how this view says no, not an error
    return response


def _report() -> tuple[dict[str, Any], bool]:
    try:
        beats = Worker.objects.filter(stopping=False).values_list("host", "beat_at")
        seconds = [round(database_time() - at, 1) for _, at in beats]
        alive = [age for age in seconds if age < settings.AGENTSITE_BEAT_SECONDS]
        report = {"database": "ok", "workers": len(alive), "last_beat_seconds": min(seconds, default=None)}
        return report | {"queue": len(claimable(1000))}, bool(alive)
    except Error:
        return {"database": "unreachable"}, False
