"""The admin's sidebar: approvals first, with how many are pending. The settings name these functions."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.urls import reverse

from conversations.admin.figures import may_see_figures
from conversations.approvals.permissions import count_waiting
from conversations.prompts.killswitch import active_switch

BADGE_MOST = 99

RECORD = (
    ("Conversations", "forum", "conversations", "conversation"),
    ("Prompts", "chat", "conversations", "prompt"),
    ("Outputs", "view_timeline", "conversations", "output"),
    ("Steps", "list_alt", "conversations", "step"),
    ("Files", "draft", "conversations", "file"),
    ("Erasures", "delete_history", "conversations", "erasure"),
    ("Redactions", "ink_eraser", "conversations", "redaction"),
    ("Checks", "fact_check", "conversations", "verification"),
)
SETTINGS = (
    ("System prompts", "edit_note", "agents", "systemprompt"),
    ("Skills", "school", "agents", "skill"),
    ("Blueprints", "menu_book", "agents", "blueprint"),
    ("Tools", "build", "conversations", "tooluse"),
    ("Suggestions", "lightbulb", "agents", "suggestion"),
    ("Workflows", "account_tree", "workflows", "workflowsetting"),
    ("API keys", "key", "conversations", "apikey"),
    ("Grants", "approval_delegation", "conversations", "grant"),
    ("Triggers", "alarm", "conversations", "trigger"),
    ("Webhooks", "webhook", "conversations", "webhook"),
    ("Deliveries", "outbox", "conversations", "delivery"),
)
PEOPLE = (("Users", "person", "auth", "user"), ("Groups", "group", "auth", "group"))
SWITCH = (("Kill switch", "emergency_home", "conversations", "killswitch"),)


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups of the sidebar, with the links that this person may use."""
    approvals = _link("Approvals", "verified_user", "conversations", "approval")
    if waits := waiting(request.user):
        approvals |= {"badge": waits, "badge_variant": "warning"}
    figures = reverse("admin:conversations_approval_figures")
    approvals["active"] = lambda request: request.path.startswith(approvals["link"]) and request.path != figures
    seen = [{"title": "Figures", "icon": "bar_chart", "link": figures}] if may_see_figures(request) else []
    start = {"title": "Start", "icon": "home", "link": reverse("admin:index")}
    # Never the current page, though every address of the admin begins with that of the link.
    chat = {"title": "Back to the chat", "icon": "arrow_back", "link": reverse("home"), "active": lambda request: False}
    return [
        {"items": [start, approvals, *seen, *_visible(SWITCH, request), chat]},
        {"title": "The record", "separator": True, "items": _visible(RECORD, request)},
        {"title": "Settings", "separator": True, "items": _visible(SETTINGS, request)},
        {"title": "People", "separator": True, "items": _visible(PEOPLE, request)},
    ]


def waiting(staff: User | AnonymousUser) -> str:
    """Return how many approvals wait for this person, counted as on the site's pages: at most "99+", "" for none."""
    count = count_waiting(staff)
    return f"{BADGE_MOST}+" if count > BADGE_MOST else str(count or "")


def stopped(request: HttpRequest) -> list[str] | None:
    """Return the label at the top of every admin page while the kill switch is on."""
    return ["All work is stopped", "danger"] if active_switch() else None


def _visible(links: tuple[tuple[str, str, str, str], ...], request: HttpRequest) -> list[dict[str, Any]]:
    """Return the links to pages that the person may see."""
    pages = {link: admin.site.get_model_admin(apps.get_model(*link[2:])) for link in links}
    return [_link(*link) for link in links if pages[link].has_view_permission(request)]


def _link(title: str, icon: str, app: str, model: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse(f"admin:{app}_{model}_changelist")}
