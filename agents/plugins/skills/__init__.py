"""Skills: an agent always sees their descriptions, and the full text of those that are active."""
