"""Users named on the command line."""

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import CommandError


def user_named(username: str) -> User:
    """Return the user with this name. Raises CommandError if there is none."""
    user: User | None = get_user_model().objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is no user {username!r}.")
    return user
