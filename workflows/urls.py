"""URLs of the pages of workflows."""

from django.urls import path

from workflows.pages import batch, views

urlpatterns = [
    path("workflows/", views.select, name="workflows"),
    path("workflow-menu/", views.menu, name="workflow-menu"),
    path("workflows/runs/", views.history, name="runs"),
    path("workflows/runs/<int:pk>/star/", views.star_run, name="run-star"),
    path("workflows/batches/", batch.batches, name="batches"),
    path("workflows/batches/<int:pk>/", batch.batch, name="batch"),
    path("workflows/batches/<int:pk>/stop/", batch.batch_stop, name="batch-stop"),
    path("workflows/batches/<int:pk>/delete/", batch.batch_delete, name="batch-delete"),
    path("workflows/batches/<int:pk>/results.csv", batch.batch_results, name="batch-results"),
    path("workflows/<str:name>/", views.workflow, name="workflow"),
    path("workflows/<str:name>/star/", views.star, name="workflow-star"),
    path("workflows/<str:name>/upload/", views.upload, name="workflow-upload"),
    path("workflows/<str:name>/batch/", batch.batch_form, name="workflow-batch"),
    path("workflows/<str:name>/batch/template.csv", batch.batch_template, name="workflow-batch-template"),
    path("workflows/<str:name>/in/<int:pk>/", views.workflow_in, name="workflow-in"),
    path("workflows/<str:name>/fill/", views.fill_in, name="workflow-fill"),
    path("workflows/<str:name>/filled/<int:pk>/", views.filled, name="workflow-filled"),
    path("workflows/<str:name>/runs/", views.runs, name="workflow-runs"),
    path("workflows/<str:name>/runs/<int:pk>/again/", views.again, name="workflow-again"),
]
