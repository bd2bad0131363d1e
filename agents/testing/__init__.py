"""Testing tools, plugins, agents, policies and workflows, without a site, a database or a model.

    from agents.testing import asks, call, run, turn

    def test_a_large_order_waits():
        order = call(tools.order, item="paper", pieces=500)
        assert "more than ten" in order.waiting["1"].reason
        assert order.approve().value == "Ordered. Now 620 in stock."

`call` runs one call of a tool, `turn` an agent whose model answers from a script, and `run` a policy or a workflow.
Each returns a `Trial`: what happened, and the people who decide. With `pytest_plugins = ["agents.testing"]` in
`conftest.py`, the fixture `trials` has the same three functions, which then share a workspace in pytest's `tmp_path`.
"""

from agents.testing.fixture import trials
from agents.testing.model import Question, asks
from agents.testing.services import SavedFile, TrialServices
from agents.testing.starting import Trials, call, run, turn
from agents.testing.trial import Trial

__all__ = ["Question", "SavedFile", "Trial", "TrialServices", "Trials", "asks", "call", "run", "trials", "turn"]
