"""The Django project: settings, URLs, the web server and `manage.py serve`. No other package imports it."""
