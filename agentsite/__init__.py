"""The Django project: settings, addresses, the web server's entry and `manage.py serve`. Nobody imports it."""
