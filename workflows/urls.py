"""URLs of the pages of workflows."""

from django.urls import path

from workflows.pages import views

urlpatterns = [
    path("workflows/", views.select, name="workflows"),
    path("workflow-menu/", views.menu, name="workflow-menu"),
    path("workflows/runs/", views.history, name="runs"),
    path("workflows/runs/<int:pk>/star/", views.star_run, name="run-star"),
    path("workflows/<str:name>/", views.workflow, name="workflow"),
    path("workflows/<str:name>/star/", views.star, name="workflow-star"),
    path("workflows/<str:name>/upload/", views.upload, name="workflow-upload"),
    path("workflows/<str:name>/in/<int:pk>/", views.workflow_in, name="workflow-in"),
    path("workflows/<str:name>/fill/", views.fill_in, name="workflow-fill"),
    path("workflows/<str:name>/filled/<int:pk>/", views.filled, name="workflow-filled"),
    path("workflows/<str:name>/runs/", views.runs, name="workflow-runs"),
    path("workflows/<str:name>/runs/<int:pk>/again/", views.again, name="workflow-again"),
]
