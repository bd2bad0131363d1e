"""The REST API of workflows."""
