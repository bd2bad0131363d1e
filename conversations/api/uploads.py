"""Uploads: files that are sent before the run of a workflow that takes them."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from conversations.api import shapes
from conversations.api.bodies import MultipartBody, NewUpload, StrictJSON
from conversations.api.describe import LIST, operation
from conversations.api.errors import Invalid
from conversations.api.paging import paginate
from conversations.api.views import ApiView
from conversations.files import pending
from conversations.files.uploads import BadFile, Upload
from conversations.models import PendingFile, Scope


class Uploads(ApiView):
    """The files that the caller uploaded, and no run has taken."""

    scopes = (Scope.WORKFLOWS,)
    parser_classes = [MultipartBody, StrictJSON]

    @operation("List your uploads", shapes.UploadPage, parameters=LIST)
    def get(self, request: Request) -> Response:
        """List the files that you uploaded, and no run has taken yet, the newest first."""
        return paginate(request, PendingFile.objects.visible_to(request.user).order_by("-pk"), shapes.Upload.of)

    @operation("Upload a file", {201: shapes.Upload}, request={MultipartBody.media_type: NewUpload})
    def post(self, request: Request) -> Response:
        """Upload a file for a workflow. Give its `token` as the parameter that takes a file (`format: uploaded-file`).

        The run that starts with it has the file in its workspace; then the upload is gone. So it is after a day.
        With a key, it takes the scope `workflows`.
        """
        try:
            return Response(shapes.Upload.of(pending.keep(request.user, _sent_file(request))), status=201)
        except BadFile as error:
            raise Invalid({"file": [str(error)]}) from error


class OneUpload(ApiView):
    """One upload."""

    scopes = (Scope.WORKFLOWS,)

    @operation("Delete an upload", {204: None})
    def delete(self, request: Request, token: str) -> Response:
        """Delete a file that no run has taken. Raises PendingFile.DoesNotExist."""
        if not pending.discard(request.user, token):
            raise PendingFile.DoesNotExist
        return Response(status=204)


def _sent_file(request: Request) -> Upload:
    """Return the one file of a form. Raises Invalid, BadFile."""
    sent, others = request.FILES.getlist("file"), {*request.POST, *request.FILES} - {"file"}
    if others:
        raise Invalid({name: ["There is no such field."] for name in others})
    if len(sent) != 1 or "file" in request.POST:
        raise Invalid({"file": ["Send one file here, in a form."]})
    return Upload.of(sent[0])
