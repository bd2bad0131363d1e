"""The pages of the chat: rendered on the server, and every control a plain link or form."""
