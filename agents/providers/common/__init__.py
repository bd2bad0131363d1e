"""What all protocols share: the client, the model server, failures, prices and reasoning."""
