"""Passthrough, `/v1`: an OpenAI client's own requests to the model server, with the site's key instead of its own.

It is an ASGI app in front of Django. Bodies and answers pass as they are, byte for byte; nothing is added, nothing
runs, and no conversation is made. It knows no conversation, and people only by the protocol in `caller`.
"""
