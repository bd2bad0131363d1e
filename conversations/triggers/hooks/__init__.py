"""Webhooks that come in: who may send them, how they arrive, and what a workflow is given of them."""
