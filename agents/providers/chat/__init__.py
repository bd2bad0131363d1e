"""Chat Completions: what nearly every model server speaks."""
