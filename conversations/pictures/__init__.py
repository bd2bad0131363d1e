"""Pictures of diagrams: drawn in child processes of their own, checked, and kept in memory."""
