"""The demo's verdicts and its exit status; no JVM."""

from __future__ import annotations

from io import StringIO

import pyarrow as pa
import pytest
from demo_screen import Screen
from demo_verdicts import Verdicts

WANT = pa.table({"k": [1, 2], "v": ["a", None]}, schema=pa.schema([pa.field("k", pa.int32(), False), ("v", pa.string())]))


@pytest.fixture
def verdicts() -> Verdicts:
    return Verdicts(Screen(StringIO()))


def text(verdicts: Verdicts) -> str:
    stream = verdicts.screen.stream
    assert isinstance(stream, StringIO)
    return stream.getvalue()


def test_equal_answers_exit_with_0(verdicts: Verdicts) -> None:
    assert verdicts.add("The answer", True) == "equal to plain pandas"
    assert verdicts.rows(WANT.take([1, 0]), WANT, ["k"]) == "equal to plain pandas"
    assert verdicts.conclude() == 0
    assert "All 2 answers equal" in text(verdicts)


def test_one_difference_exits_with_1_and_is_named(verdicts: Verdicts) -> None:
    verdicts.add("The answer", True)
    verdicts.add("The other", False)
    assert verdicts.conclude() == 1
    assert text(verdicts).splitlines()[-1] == "1 of 2 answers DIFFER: The other"


@pytest.mark.parametrize(
    "found",
    [WANT.slice(1), pa.concat_tables([WANT, WANT.slice(1)]), WANT.set_column(1, "v", pa.array(["a", "b"]))],
    ids=["a row is missing", "a row is there twice", "a value is wrong"],
)
def test_rows_that_differ_are_found(verdicts: Verdicts, found: pa.Table) -> None:
    assert verdicts.rows(found, WANT, ["k"]) == "DIFFERS from plain pandas"
    assert verdicts.conclude() == 1
