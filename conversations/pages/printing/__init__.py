"""The print view: a whole conversation as a document for paper."""
