"""The OpenAPI document and its page, served by this site alone."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.utils.decorators import method_decorator
from drf_spectacular.drainage import set_override
from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerExtension
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.renderers import OpenApiJsonRenderer2
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from pydantic.json_schema import JsonSchemaMode
from rest_framework.response import Response

from conversations.api.views import ApiView

REF = "#/components/schemas/{model}"
# Swagger UI writes inline styles and contains small images of its own. Nothing is loaded from another origin.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
KEY = (
    "An API key, made on your account page. Reading takes its scope `read`. Changing something takes `chat`, except for"
    " approvals (`decide`), and for workflows, their batches, triggers and uploads (`workflows`)."
)


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How an API key is sent."""

    target_class = "conversations.api.views.KeyAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the security scheme."""
        return {"type": "http", "scheme": "bearer", "description": KEY}


class Shapes(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Pydantic models as components. Fields with a default are optional in requests and always present in responses."""

    target_class = "pydantic.BaseModel"
    match_subclasses = True
    priority = 1

    def get_name(self, auto_schema: Any, direction: str) -> str:
        """Return the name of the component."""
        set_override(self.target, "suppress_collision_warning", True)  # of a model that contains itself
        return str(self.target.__name__)

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        """Return the model's JSON Schema; nested models become components of their own."""
        mode: JsonSchemaMode = "validation" if direction == "request" else "serialization"
        schema: dict[str, Any] = self.target.model_json_schema(ref_template=REF, mode=mode)
        for name, inner in schema.pop("$defs", {}).items():
            found = ResolvedComponent(name, ResolvedComponent.SCHEMA, inner, name)  # type: ignore[no-untyped-call]
            auto_schema.registry.register_on_missing(found)
        return schema


class Schema(ApiView, SpectacularAPIView):
    """The OpenAPI 3 document, for those who may use the API."""

    renderer_classes: list[Any] = [OpenApiJsonRenderer2]


@method_decorator(login_required, name="dispatch")
class Docs(SpectacularSwaggerSplitView):
    """The document as a page on which you can try out requests, as the user who is signed in."""

    http_method_names = ["get", "head"]  # OPTIONS of the REST framework has no template
    url_name = "api-schema"
    title = "Agentsite API"

    def finalize_response(self, request: HttpRequest, response: Response, *args: Any, **kwargs: Any) -> Response:
        """Set a Content-Security-Policy of its own."""
        response["Content-Security-Policy"] = POLICY
        return super().finalize_response(request, response, *args, **kwargs)
