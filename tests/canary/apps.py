"""A page that fails with the environment in its words."""

import os

from django.apps import AppConfig
from django.http import HttpRequest, HttpResponse
from django.urls import path


class CanaryConfig(AppConfig):
    """Adds `/fail/`."""

    name = "tests.canary"
    label = "canary"

    def ready(self) -> None:
        from agentsite import urls

        urls.urlpatterns[:0] = [path("fail/", fail)]


def fail(request: HttpRequest) -> HttpResponse:
    raise RuntimeError(f"{dict(os.environ)} {request.headers.get('Authorization')}")
