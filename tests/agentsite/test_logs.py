import json
import logging
import sys

from agentsite.logs import JsonFormatter, TerminalFormatter, configuration


def record(**extra: object) -> logging.LogRecord:
    made = logging.LogRecord("agents.engine", logging.WARNING, __file__, 1, "a %s\nline", ("second",), None)
    made.__dict__.update(extra)
    return made


def test_a_line_is_one_json_object_that_says_what_it_is_about() -> None:
    line = JsonFormatter().format(record(conversation=3, prompt=7, path="3/1"))
    assert "\n" not in line
    said = json.loads(line)
    assert said.pop("time").endswith("+00:00")
    assert said == {
        "level": "warning",
        "logger": "agents.engine",
        "message": "a second\nline",
        "conversation": 3,
        "prompt": 7,
        "path": "3/1",
    }


def test_an_error_carries_its_traceback() -> None:
    failed = record()
    try:
        int("broken")
    except ValueError:
        failed.exc_info = sys.exc_info()
    assert "ValueError: invalid literal" in json.loads(JsonFormatter().format(failed))["error"]


def test_a_person_gets_a_readable_line() -> None:
    assert TerminalFormatter().format(record(prompt=7)).endswith("WARNING agents.engine: a second\nline (prompt 7)")


def test_the_form_follows_the_reader() -> None:
    assert configuration("INFO", terminal=True)["formatters"]["line"]["()"] is TerminalFormatter
    assert configuration("INFO", terminal=False)["formatters"]["line"]["()"] is JsonFormatter
