"""Memory: what an agent keeps of the person it works for, and is told of again in later conversations."""
