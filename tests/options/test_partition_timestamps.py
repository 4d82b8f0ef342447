"""Patterns and formatters of partition times, taken apart."""

from __future__ import annotations

import pytest

from lakelsm.options.partition_timestamps import DAY_FIELDS, parse_timestamp_formatter, pattern_pieces


def test_a_formatter_reads_the_fields_that_it_names() -> None:
    found = parse_timestamp_formatter("yyyyMMdd 'at' HH''").fullmatch("20260131 at 07'")
    assert found is not None
    assert found.groupdict() == {"year": "2026", "month": "01", "day": "31", "hour": "07"}
    assert found.groupdict().keys() >= DAY_FIELDS


@pytest.mark.parametrize("text", ["yyyy-MMM", "E", "[yyyy]", "yyyy uuuu", "'open", "SSSSSSSSSS", "yyyyy", "a"])
def test_what_lakelsm_does_not_read_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="lakelsm does not read"):
        parse_timestamp_formatter(text)


def test_a_pattern_is_text_and_names_by_turns_the_longest_names_first() -> None:
    assert pattern_pieces("$dt $dt1:00", ["dt", "dt1"]) == (["", "dt", " ", "dt1", ":00"], None)
    assert pattern_pieces("$dt $hour", ["dt"]) == (["", "dt", " $hour"], "$hour")
    assert pattern_pieces("$dt", []) == (["$dt"], "$dt")
