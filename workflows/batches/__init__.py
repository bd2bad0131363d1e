"""Batches: runs of a workflow for each line of a table, checked together and started a few at a time."""
