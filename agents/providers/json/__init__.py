"""The JSON text protocol: tools for models that know no tool calls."""
