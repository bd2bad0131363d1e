"""Reading the rest of a long result, of which the model saw only the beginning and the end."""
