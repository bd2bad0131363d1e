"""Settings with short times, so that a takeover takes seconds."""

SETTINGS = {
    "AGENTSITE_LEASE_SECONDS": "2",
    "AGENTSITE_RENEW_SECONDS": "0.3",
    "AGENTSITE_SWEEP_SECONDS": "0.5",
    "AGENTSITE_BEAT_SECONDS": "60",
    "AGENTSITE_STOP_SECONDS": "20",
    "AGENTSITE_TURN_SECONDS": "600",
    "AGENTSITE_TOOL_TOKENS": "8000",
    "AGENTSITE_APPS": "tests.crash.app",
}
