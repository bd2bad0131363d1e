"""What all protocols share: the client, failures, prices, and how a server is asked."""
