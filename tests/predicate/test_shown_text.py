"""SQL text in messages."""

from __future__ import annotations

from lakelsm.predicate.shown_text import shown_condition


def test_messages_show_the_beginning_of_a_long_condition() -> None:
    assert shown_condition("a = 'b'") == '"a = \'b\'"'
    assert shown_condition("x" * 1000) == repr("x" * 300) + "... (1000 characters)"
