"""The admin: approvals are decided here, the record is read here, people are kept here."""

from conversations.admin import approvals, people, record

__all__ = ["approvals", "people", "record"]
