"""Who answers for what a command does."""

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import CommandError


def named(username: str) -> User:
    """The user of this name. Raises CommandError."""
    user: User | None = get_user_model().objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is no user {username!r}.")
    return user
