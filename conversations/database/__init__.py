"""The database: hand-written SQL, the guard on steps, full disks, and threads with connections of their own."""
