"""The ledger in the database: the one writer of steps, and the claim by which a worker may write."""
