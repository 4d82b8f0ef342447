"""Parsers of the patterns and formatters of partition times."""

from __future__ import annotations

import pytest

from lakelsm.options.partition_timestamps import DAY_FIELDS, parse_timestamp_formatter, pattern_pieces


def test_a_formatter_becomes_an_expression_with_a_group_per_field() -> None:
    found = parse_timestamp_formatter("yyyyMMdd 'at' HH''").fullmatch("20260131 at 07'")
    assert found is not None
    assert found.groupdict() == {"year": "2026", "month": "01", "day": "31", "hour": "07"}
    assert found.groupdict().keys() >= DAY_FIELDS


@pytest.mark.parametrize("text", ["yyyy-MMM", "E", "[yyyy]", "yyyy uuuu", "'open", "SSSSSSSSSS", "yyyyy", "a"])
def test_unsupported_parts_of_a_formatter_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not supported"):
        parse_timestamp_formatter(text)


def test_a_pattern_is_split_at_column_names_and_longer_names_match_first() -> None:
    assert pattern_pieces("$dt $dt1:00", ["dt", "dt1"]) == (["", "dt", " ", "dt1", ":00"], None)
    assert pattern_pieces("$dt $hour", ["dt"]) == (["", "dt", " $hour"], "$hour")
    assert pattern_pieces("$dt", []) == (["$dt"], "$dt")
