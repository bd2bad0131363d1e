"""Tools and plugins, as their authors declare them."""
