"""Chat Completions, the API that nearly every model server has."""
