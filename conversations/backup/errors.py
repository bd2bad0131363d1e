"""Why a backup or a restore does not go on."""


class BackupFailed(Exception):
    """The message says why in words, and what to do."""
