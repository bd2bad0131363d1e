"""The Responses API: OpenAI itself, and servers that speak its protocol."""
