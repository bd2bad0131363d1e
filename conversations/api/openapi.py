"""The API's description and its docs page, from our own address."""

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
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from rest_framework.response import Response

from conversations.api import shapes
from conversations.api.views import ApiView
from conversations.models import Conversation, Prompt

UNKNOWN = "/api/"
REF = "#/components/schemas/{model}"
# Swagger UI writes styles into its page and shows small pictures that it carries itself. Nothing comes from elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How a key is sent."""

    target_class = "conversations.api.auth.KeyAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """As OpenAPI says it."""
        return {"type": "http", "scheme": "bearer", "description": "An API key, made on your account page."}


class Shapes(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Pydantic models as components: what is sent may leave out what has a default, what is answered does not."""

    target_class = "pydantic.BaseModel"
    match_subclasses = True
    priority = 1

    def get_name(self, auto_schema: Any, direction: str) -> str:
        """The name of the component."""
        set_override(self.target, "suppress_collision_warning", True)  # of a model with itself, inside another
        return str(self.target.__name__)

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        """The model's JSON Schema; the models in it are components of their own."""
        mode: JsonSchemaMode = "validation" if direction == "request" else "serialization"
        schema: dict[str, Any] = self.target.model_json_schema(ref_template=REF, mode=mode)
        for name, inner in schema.pop("$defs", {}).items():
            found = ResolvedComponent(name, ResolvedComponent.SCHEMA, inner, name)  # type: ignore[no-untyped-call]
            auto_schema.registry.register_on_missing(found)
        return schema


def described_paths(endpoints: list[tuple[Any, ...]], **kwargs: Any) -> list[tuple[Any, ...]]:
    """The addresses that are described: all but the one for those that are none."""
    return [each for each in endpoints if each[0] != UNKNOWN]


def with_events(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """The description with the addresses that stream: they are no views of the REST framework."""
    _, found = models_json_schema([(shapes.Event, "serialization")], ref_template=REF)
    components = result["components"]["schemas"]
    for name, schema in found["$defs"].items():
        components.setdefault(name, schema)
    for model, whole in ((Conversation, "conversation"), (Prompt, "prompt")):
        result["paths"][f"/api/{whole}s/{{id}}/events/"] = {"get": _stream(whole, model.__name__)}
    return result


def _stream(whole: str, of: str) -> dict[str, Any]:
    """One address that streams."""
    ends = " The stream ends after the prompt's last event." if whole == "prompt" else ""
    return {
        "operationId": f"follow_a_{whole}",
        "summary": f"Follow a {whole}",
        "description": f"What happened after a step, and what happens from now on, as server-sent events.{ends}",
        "tags": [f"{whole}s"],
        "parameters": [
            {"in": "path", "name": "id", "required": True, "schema": {"type": "integer"}, "description": f"{of}."},
            {
                "in": "query",
                "name": "after",
                "schema": {"type": "integer"},
                "description": "The seq of the last event you have; 0 for none.",
            },
            {
                "in": "header",
                "name": "Last-Event-ID",
                "schema": {"type": "string"},
                "description": "The same, as browsers send it when they connect again.",
            },
        ],
        "security": [{"key": []}, {"cookieAuth": []}],
        "responses": {
            "200": {
                "description": "Each event's `id:` is its seq, its `data:` an Event.",
                "content": {"text/event-stream": {"schema": {"$ref": REF.format(model="Event")}}},
            },
            **{
                status: {
                    "description": said,
                    "content": {"application/json": {"schema": {"$ref": REF.format(model="Error")}}},
                }
                for status, said in (("401", "Nobody is known."), ("404", "It is not there, or it is not yours."))
            },
        },
    }


class Schema(ApiView, SpectacularAPIView):
    """The API's description as OpenAPI 3, for those who may use it."""

    renderer_classes = [OpenApiJsonRenderer2]
    permission_classes = ApiView.permission_classes
    authentication_classes = ApiView.authentication_classes


@method_decorator(login_required, name="dispatch")
class Docs(SpectacularSwaggerSplitView):
    """The description as a page on which requests can be tried out, as whoever is logged in."""

    url_name = "api-schema"
    title = "Agentsite API"

    def finalize_response(self, request: HttpRequest, response: Response, *args: Any, **kwargs: Any) -> Response:
        """With a policy of its own."""
        response["Content-Security-Policy"] = POLICY
        return super().finalize_response(request, response, *args, **kwargs)
