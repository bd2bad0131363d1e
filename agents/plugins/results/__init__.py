"""Reading on in a result of which the model was only shown head and tail."""
