"""The fields of a call on its card."""

from __future__ import annotations

from conversations.display.call import display_call


def test_fields_stand_in_the_order_in_which_they_are_declared_and_long_ones_below() -> None:
    declared = {"properties": {name: {"type": "string"} for name in ("to", "text", "subject")}}
    shown = display_call("mail.write", {"subject": "s", "text": "one\ntwo", "to": "t", "other": "o"}, schema=declared)
    assert [field.name for field in shown.fields] == ["to", "subject", "other", "text"]
