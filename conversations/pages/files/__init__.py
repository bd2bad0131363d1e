"""Files on pages: what a file is, its preview, and the images in answers."""
