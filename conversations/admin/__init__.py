"""The admin: deciding approvals, reading the record, managing people, keys and settings."""

from django.contrib import admin
from django_q.models import Failure, OrmQ, Schedule, Success

from conversations.admin import (
    approvals,
    blueprints,
    completing,
    grants,
    keys,
    killswitch,
    people,
    prompting,
    record,
    system_prompts,
    tools,
    triggers,
    webhooks,
)

__all__ = [
    "approvals",
    "blueprints",
    "completing",
    "grants",
    "keys",
    "killswitch",
    "people",
    "prompting",
    "record",
    "system_prompts",
    "tools",
    "triggers",
    "webhooks",
]

admin.site.autocomplete_view = completing.complete  # type: ignore[method-assign]

# django-q2's own pages let people schedule any function. Background tasks are the site's business, not a form's.
for model in (Failure, OrmQ, Schedule, Success):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
