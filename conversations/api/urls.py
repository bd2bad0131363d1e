"""The URLs of the API."""

from django.urls import path, re_path

from conversations.api import approvals, conversations, events, grants, openapi, prompts, triggers, uploads, usage
from conversations.api.views import Unknown

urlpatterns = [
    path("conversations/", conversations.Conversations.as_view(), name="api-conversations"),
    path("conversations/<int:pk>/", conversations.OneConversation.as_view(), name="api-conversation"),
    path("conversations/<int:pk>/events/", events.ConversationEvents.as_view(), name="api-conversation-events"),
    path("conversations/<int:pk>/prompts/", prompts.Prompts.as_view(), name="api-prompts"),
    path("system-prompts/", conversations.SystemPrompts.as_view(), name="api-system-prompts"),
    path("prompts/<int:pk>/", prompts.OnePrompt.as_view(), name="api-prompt"),
    path("prompts/<int:pk>/events/", events.PromptEvents.as_view(), name="api-prompt-events"),
    path("prompts/<int:pk>/steps/", prompts.PromptSteps.as_view(), name="api-prompt-steps"),
    path("prompts/<int:pk>/outputs/", prompts.PromptOutputs.as_view(), name="api-prompt-outputs"),
    path("prompts/<int:pk>/cancel/", prompts.Cancel.as_view(), name="api-prompt-cancel"),
    path("prompts/<int:pk>/continue/", prompts.Continue.as_view(), name="api-prompt-continue"),
    path("prompts/<int:pk>/again/", prompts.Again.as_view(), name="api-prompt-again"),
    path("approvals/", approvals.Approvals.as_view(), name="api-approvals"),
    path("approvals/decide/", approvals.DecideTogether.as_view(), name="api-decide"),
    path("approvals/<int:pk>/", approvals.OneApproval.as_view(), name="api-approval"),
    path("approvals/<int:pk>/answer/", approvals.AnswerOne.as_view(), name="api-answer"),
    path("approvals/<int:pk>/approve/", approvals.ApproveOne.as_view(), name="api-approve"),
    path("approvals/<int:pk>/reject/", approvals.RejectOne.as_view(), name="api-reject"),
    path("grants/", grants.Grants.as_view(), name="api-grants"),
    path("grants/<int:pk>/revoke/", grants.RevokeGrant.as_view(), name="api-revoke-grant"),
    path("triggers/", triggers.Triggers.as_view(), name="api-triggers"),
    path("triggers/<int:pk>/", triggers.OneTrigger.as_view(), name="api-trigger"),
    path("triggers/<int:pk>/firings/", triggers.Firings.as_view(), name="api-firings"),
    path("triggers/<int:pk>/firings/<int:firing>/again/", triggers.StartAgain.as_view(), name="api-start-again"),
    path("triggers/<int:pk>/secrets/", triggers.Secrets.as_view(), name="api-hook-secrets"),
    path("triggers/<int:pk>/secrets/<int:secret>/", triggers.OneSecret.as_view(), name="api-hook-secret"),
    path("triggers/<int:pk>/pause/", triggers.Pause.as_view(), name="api-pause-trigger"),
    path("triggers/<int:pk>/resume/", triggers.Resume.as_view(), name="api-resume-trigger"),
    path("triggers/<int:pk>/run/", triggers.Run.as_view(), name="api-run-trigger"),
    path("files/<int:pk>/", conversations.OneFile.as_view(), name="api-file"),
    path("uploads/", uploads.Uploads.as_view(), name="api-uploads"),
    path("uploads/<str:token>/", uploads.OneUpload.as_view(), name="api-upload"),
    path("usage/", usage.UsageView.as_view(), name="api-usage"),
    path("schema/", openapi.Schema.as_view(), name="api-schema"),
    path("docs/", openapi.Docs.as_view(), name="api-docs"),
    re_path("", Unknown.as_view(), name="api-unknown"),
]
