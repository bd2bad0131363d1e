"""Django's own way to hash passwords, with so few rounds that no test waits for it."""

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class Quick(PBKDF2PasswordHasher):
    """What it makes, a site's own hasher can check: the rounds stand in the hash."""

    iterations = 1000
