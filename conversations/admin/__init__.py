"""The admin: approvals are decided here, the record is read here, people are kept here."""

from django.contrib import admin
from django_q.models import Failure, OrmQ, Schedule, Success

from conversations.admin import approvals, keys, killswitch, people, record, skills, system_prompts

__all__ = ["approvals", "keys", "killswitch", "people", "record", "skills", "system_prompts"]

# django-q2's own pages let one schedule any function there is. Background tasks are the site's, not a form's.
for model in (Failure, OrmQ, Schedule, Success):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
