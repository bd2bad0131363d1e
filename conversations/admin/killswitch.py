"""The kill switch in the admin: one page that says whether it is on, turns it, and lists when it was on before."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from conversations.admin.base import ReadOnly
from conversations.admin.detail import person
from conversations.models import KillSwitch, Prompt, State
from conversations.prompts.killswitch import REASON_MOST, person_of, standing, turn_off, turn_on

ROWS_MOST = 20
PAGE = "admin:conversations_killswitch_changelist"


@admin.register(KillSwitch)
class KillSwitchAdmin(ReadOnly):
    """Its page; the rows have none of their own."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether it stands in the admin's index."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: KillSwitch | None = None) -> bool:
        """Those who may turn it."""
        return request.user.has_perm("conversations.use_kill_switch")

    def get_urls(self) -> list[URLPattern]:
        """The one page."""
        page = path("", self.admin_site.admin_view(self.switch_view), name="conversations_killswitch_changelist")
        return [page]

    def switch_view(self, request: HttpRequest) -> HttpResponse:
        """GET shows how it stands; POST turns it (`turn`: on with a `reason`, off). 400 without a reason."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return self._page(request)
        try:
            self._turn(request)
        except ValueError as error:
            return self._page(request, str(error), 400)
        return redirect(PAGE)

    def _turn(self, request: HttpRequest) -> None:
        match request.POST.get("turn"):
            case "on":
                turn_on(person(request), request.POST.get("reason", ""))
                messages.warning(request, "All work is stopped.")
            case "off":
                turn_off(person(request))
                messages.success(request, "Work goes on: turns that wait are taken up.")
            case _:
                raise ValueError("Choose what to do: turn it on, or off.")

    def _page(self, request: HttpRequest, problem: str = "", status: int = 200) -> HttpResponse:
        now = standing()
        past = [
            {"row": row, "on": person_of(row.on_by), "off": person_of(row.off_by)}
            for row in KillSwitch.objects.exclude(off_at=None)[:ROWS_MOST]
        ]
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Kill switch",
            "now": now,
            "by": person_of(now.on_by) if now else "",
            "past": past,
            "running": Prompt.objects.filter(state=State.RUNNING, lease_until__gt=0).count(),
            "waiting": Prompt.objects.filter(state__in=(State.QUEUED, State.WAITING)).count(),
            "problem": problem,
            "reason_most": REASON_MOST,
        }
        return TemplateResponse(request, "admin/conversations/killswitch/switch.html", context, status=status)
