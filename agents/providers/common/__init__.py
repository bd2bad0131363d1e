"""What all protocols share: the model server, failures, prices and reasoning."""
