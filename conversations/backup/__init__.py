"""Backups: one archive with the database, the files and the workspaces, and the way back to a site that can be used.

A restored site lies in the past: what happened after its backup was taken is unknown, and is treated so (`past`).
"""
