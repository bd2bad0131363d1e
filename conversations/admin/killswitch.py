"""The kill switch in the admin: one page to see it, turn it on or off, and list when it was on."""

from __future__ import annotations

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path

from conversations.admin.base import ReadOnly, person
from conversations.ledger.claims import claimed
from conversations.models import KillSwitch, Prompt, State
from conversations.prompts.killswitch import REASON_MOST, active_switch, actor_name, turn_off, turn_on

ROWS_MOST = 20
PAGE = "admin:conversations_killswitch_changelist"


@admin.register(KillSwitch)
class KillSwitchAdmin(ReadOnly):
    """The page of the kill switch; its rows have no pages of their own."""

    def has_view_permission(self, request: HttpRequest, obj: KillSwitch | None = None) -> bool:
        """Whether the person may use the kill switch."""
        return request.user.has_perm("conversations.use_kill_switch")

    def get_urls(self) -> list[URLPattern]:
        """Return the one page."""
        page = path("", self.admin_site.admin_view(self.switch_view), name="conversations_killswitch_changelist")
        return [page]

    def switch_view(self, request: HttpRequest) -> HttpResponse:
        """GET shows whether it is on; POST turns it on, with a `reason`, or off (`turn`). 400 without a reason."""
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
                messages.success(request, "Work has resumed: queued turns are running again.")
            case _:
                raise ValueError("Choose whether to turn it on or off.")

    def _page(self, request: HttpRequest, problem: str = "", status: int = 200) -> HttpResponse:
        now = active_switch()
        past = [
            {"row": row, "on": actor_name(row.on_by), "off": actor_name(row.off_by)}
            for row in KillSwitch.objects.exclude(off_at=None)[:ROWS_MOST]
        ]
        context = {
            "title": "Kill switch",
            "now": now,
            "by": actor_name(now.on_by) if now else "",
            "past": past,
            "running": claimed().filter(state=State.RUNNING).count(),
            "waiting": Prompt.objects.filter(state__in=(State.QUEUED, State.WAITING, State.SLEEPING)).count(),
            "problem": problem,
            "reason_most": REASON_MOST,
        }
        return self.page(request, "killswitch/switch", context, status)
