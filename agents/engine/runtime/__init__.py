"""The runtime: policies, the calls between them, replay from a ledger, and suspension."""
