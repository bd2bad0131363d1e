"""A scripted model server for tests: the demo model's own server, which also refuses what the real APIs would refuse.

It answers with what a test's script says, or with the demo model's rules, and keeps the requests that it received.
"""
