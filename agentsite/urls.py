"""All URLs of the site: the admin, the API and the pages."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from conversations.api import errors

urlpatterns = [
    # The admin's own page would look at any number of wrong passwords.
    path("admin/password_change/", RedirectView.as_view(pattern_name="password_change")),
    path("admin/", admin.site.urls),
    path("", include("workflows.api.urls")),
    path("api/", include("conversations.api.urls")),
    path("", include("conversations.context.urls")),
    path("", include("workflows.urls")),
    path("", include("conversations.urls")),
]
handler400 = errors.bad_request
handler403 = errors.permission_denied
handler404 = errors.page_not_found
handler500 = errors.server_error
