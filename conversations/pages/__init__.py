"""The site's own pages: rendered on the server, with plain links and forms as controls."""
