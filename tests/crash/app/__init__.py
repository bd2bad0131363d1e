"""A site's own app, with tools that count what they do outside of the site's database."""
