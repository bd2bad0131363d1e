"""`/v1` over real sockets: a site's web process between real clients and a model server that tests control.

A test makes the same call twice, straight to the model server and through the site, and expects the same.
"""
