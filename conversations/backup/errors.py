"""The error of backups and restores."""


class BackupFailed(Exception):
    """A backup or a restore failed. The message says why, and what to do."""
