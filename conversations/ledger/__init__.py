"""The ledger in the database: the only writer of steps, and the claims under which workers write."""
