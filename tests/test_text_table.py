"""Rows and sizes as readable text."""

from __future__ import annotations

import datetime as dt
from datetime import datetime, timezone

import pyarrow as pa
import pytest

from lakelsm.text_table import aligned, failures_text, html_table, moment, shown_values, size


def test_columns_are_aligned_and_unknown_values_are_dashes() -> None:
    text = aligned(("name", "id"), [("a long one", 7), ("b", None)])
    assert text.splitlines() == ["name        id", "a long one  7", "b           -"]


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    assert aligned(("a", "b"), [("日本", 1), ("e\u0301", 2)]).splitlines() == ["a     b", "日本  1", "e\u0301     2"]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (5 << 30, "5.0 GiB"), (1 << 60, "1024.0 PiB")],
)
def test_a_size_has_a_fitting_unit(count: int, text: str) -> None:
    assert size(count) == text


def test_a_time_has_seconds() -> None:
    assert moment(datetime(2025, 12, 31, 23, 59, 58, 999999, timezone.utc)) == "2025-12-31 23:59:58"
    assert moment(None) is None


def test_one_of_the_remaining_files_is_named() -> None:
    assert failures_text([]) == []
    line = "  failed     2 files could not be deleted and are orphans now, such as a: no"
    assert failures_text(["a: no", "b: no"]) == [line]


def test_a_table_for_notebooks_escapes_its_cells_and_has_a_header_or_headings() -> None:
    assert html_table([("<b>", 1)], caption="a & b") == (
        "<table><caption>a &amp; b</caption><tr><th>&lt;b&gt;</th><td>1</td></tr></table>"
    )
    assert html_table([("x", None)], ["k", "v"]) == (
        "<table><tr><th>k</th><th>v</th></tr><tr><td>x</td><td>None</td></tr></table>"
    )


def test_values_without_a_python_form_are_texts() -> None:
    days = pa.array([4_000_000, None, 0], pa.int32()).cast(pa.date32())
    times = pa.array([4_000_000 * 86_400_000_000, None, 0], pa.int64()).cast(pa.timestamp("us"))
    far, first = "12921-08-18", dt.date(1970, 1, 1)
    assert shown_values(pa.chunked_array([days])) == [far, None, first]
    assert shown_values(pa.chunked_array([times]))[0] == f"{far} 00:00:00.000000"
    nested = pa.StructArray.from_arrays([days, pa.ListArray.from_arrays([0, 1, 1, 3], days)], ["a", "b"])
    assert shown_values(pa.chunked_array([nested]))[::2] == [{"a": far, "b": [far]}, {"a": first, "b": [None, first]}]
