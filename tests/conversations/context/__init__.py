"""The agent behind `/context`: the real server and worker, a scripted model, and OpenAI's own SDK."""
