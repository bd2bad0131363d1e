"""The JSON text protocol: tools for models without tool calls."""
