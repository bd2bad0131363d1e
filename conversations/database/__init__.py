"""The database: hand-written SQL, the guard on steps, a full disk, threads of its own."""
