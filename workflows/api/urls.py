"""The URLs of the API of workflows."""

from django.urls import path

from workflows.api import batches, views

urlpatterns = [
    path("workflows/categories", views.PlainCategories.as_view(), name="workflow-categories"),
    path("api/workflows/", views.Workflows.as_view(), name="api-workflows"),
    path("api/workflows/categories/", views.Categories.as_view(), name="api-workflow-categories"),
    path("api/workflows/runs/", views.AllRuns.as_view(), name="api-runs"),
    path("api/workflows/batches/", batches.Batches.as_view(), name="api-batches"),
    path("api/workflows/batches/<int:pk>/", batches.OneBatch.as_view(), name="api-batch"),
    path("api/workflows/batches/<int:pk>/stop/", batches.StopBatch.as_view(), name="api-batch-stop"),
    path("api/workflows/<str:name>/", views.OneWorkflow.as_view(), name="api-workflow"),
    path("api/workflows/<str:name>/runs/", views.Runs.as_view(), name="api-workflow-runs"),
    path("api/workflows/<str:name>/run/", views.StartRun.as_view(), name="api-workflow-run"),
    path("api/workflows/<str:name>/batch/", batches.StartBatch.as_view(), name="api-workflow-batch"),
]
