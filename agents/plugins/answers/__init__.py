"""What the page of a conversation shows, for those who write the answers."""
