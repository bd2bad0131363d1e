"""All addresses of the site: the admin, and what the apps declare."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("conversations.urls")),
]
