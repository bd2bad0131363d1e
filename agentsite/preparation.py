"""Preparation of the site before it starts: its database and its first administrator."""

import secrets
from collections.abc import Callable

from django.contrib.auth import get_user_model
from django.core.checks import Tags, run_checks
from django.core.management import call_command
from django.db import OperationalError, connection, transaction

from agents.skills import add_first_skills
from agentsite.env import environment
from agentsite.errors import CannotStart

Say = Callable[[str], object]


def prepare_database() -> None:
    """Migrate the database. Raises CannotStart if it does not answer, or cannot keep ledgers safe."""
    try:
        connection.ensure_connection()
        call_command("migrate", interactive=False, verbosity=0)
    except OperationalError as error:
        reason = str(error).strip().splitlines()[0]
        raise CannotStart(f"The database does not answer ({reason}): start it, or correct DATABASE_URL.") from error
    refuse_unsafe_database()


def refuse_unsafe_database() -> None:
    """Raise CannotStart if the database cannot keep ledgers safe, and Django's Error if it does not answer."""
    for found in run_checks(tags=[Tags.database], databases=[connection.alias]):
        if found.is_serious():
            raise CannotStart(" ".join(filter(None, (found.msg, found.hint))))


def announce_administrator(say: Say) -> None:
    """Create the first administrator if there is none, and say the password once if it was generated here.

    Name, password and e-mail address come from DJANGO_SUPERUSER_USERNAME, _PASSWORD and _EMAIL, as in Django's own
    command. The shipped skills are added together with the first administrator, so that a later start does not bring
    back one that was deleted.
    """
    users, env = get_user_model().objects, environment()
    if users.filter(is_superuser=True).exists():
        return
    name = env.text("DJANGO_SUPERUSER_USERNAME", "admin")
    if users.filter(username=name).exists():
        raise CannotStart(
            f"The user {name!r} exists but is not an administrator: set DJANGO_SUPERUSER_USERNAME to another name."
        )
    given = env.text("DJANGO_SUPERUSER_PASSWORD")
    password = given or secrets.token_urlsafe(12)
    with transaction.atomic():
        users.create_superuser(username=name, email=env.text("DJANGO_SUPERUSER_EMAIL"), password=password)
        add_first_skills()
    chosen = "the password from DJANGO_SUPERUSER_PASSWORD" if given else f"the password {password} (shown only now)"
    say(f"The first administrator is {name}, with {chosen}.")
