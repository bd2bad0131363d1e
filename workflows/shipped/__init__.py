"""The workflows that ship with Agentsite: one package each, found by its module `workflows.py`."""
