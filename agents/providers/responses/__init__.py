"""The Responses API: for OpenAI itself and compatible servers."""
