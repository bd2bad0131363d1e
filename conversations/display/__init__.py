"""Display: how calls, changes, gates and times look, the same on every surface."""
