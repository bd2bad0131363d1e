"""The site beside its peers, in one run. Each contender is a process of its own; `python -m bench.peers` runs them."""
