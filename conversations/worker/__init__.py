"""The worker: what runs prompts in the background."""
