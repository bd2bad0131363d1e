"""Configuration that people change on the site. There is none yet."""
