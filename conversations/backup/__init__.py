"""Backup and restore: one archive with the database, the files and the workspaces.

What happened after a backup was taken is unknown to the restored site, and is treated as unknown (`after_restore`).
"""
