"""Tools and plugins: what their authors declare."""
