"""The chat page: one conversation, the composer, and the dock around the timeline."""
