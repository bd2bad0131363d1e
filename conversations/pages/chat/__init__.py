"""The chat page: one conversation, the composer, and what stands around the timeline."""
