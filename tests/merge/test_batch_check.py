"""Retractions that no merge could take are refused before they are written."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.merge.batch_check import check_batch
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import create_schema

INSERT, UPDATE_BEFORE, DELETE = 0, 1, 3
SUM, MAX = {"fields.v.aggregate-function": "sum"}, {"fields.v.aggregate-function": "max"}
GROUP = {"fields.g.sequence-group": "v"}


def check(kind: int, options: dict[str, str], g: int | None = 1) -> None:
    schema = create_schema("id INT, v INT, g INT", ["id"], [], options)
    kinds = pa.array([INSERT, kind], pa.int8())
    values = pa.array([1, 1], pa.int32())
    rows = pa.table({"_VALUE_KIND": kinds, "id": values, "v": values, "g": pa.array([1, g], pa.int32())})
    check_batch(rows, MergeSpec.of(schema, TableOptions.parse(schema.options)))


@pytest.mark.parametrize("kind", [UPDATE_BEFORE, DELETE])
@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"merge-engine": "first-row"}, "'ignore-delete' = 'true'"),
        ({"merge-engine": "partial-update"}, r"'partial-update\.remove-record-on-delete' = 'true'"),
        ({"merge-engine": "aggregation", **MAX}, r"column 'v'.*'fields\.v\.ignore-retract' = 'true'"),
        ({"merge-engine": "partial-update", **GROUP, **MAX}, r"column 'v'.*'fields\.v\.ignore-retract' = 'true'"),
    ],
    ids=["first-row", "partial-update", "max", "max in a group"],
)
def test_a_retraction_that_nothing_can_take_is_refused_with_the_remedy(
    kind: int, options: dict[str, str], remedy: str
) -> None:
    with pytest.raises(InvalidInputError, match=remedy):
        check(kind, options)


@pytest.mark.parametrize("kind", [UPDATE_BEFORE, DELETE])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"merge-engine": "aggregation", **SUM},
        {"merge-engine": "aggregation", **MAX, "fields.v.ignore-retract": "true"},
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        {"merge-engine": "partial-update", **GROUP},
        {"merge-engine": "partial-update", **GROUP, **SUM},
    ],
    ids=str,
)
def test_other_retractions_pass(kind: int, options: dict[str, str]) -> None:
    check(kind, options)


def test_a_delete_that_removes_the_row_needs_no_function_to_take_it() -> None:
    aggregation = {"merge-engine": "aggregation", **MAX, "aggregation.remove-record-on-delete": "true"}
    check(DELETE, aggregation)
    with pytest.raises(InvalidInputError, match="column 'v'"):
        check(UPDATE_BEFORE, aggregation)
    group = {"merge-engine": "partial-update", **GROUP, **MAX, "partial-update.remove-record-on-sequence-group": "g"}
    check(DELETE, group)
    with pytest.raises(InvalidInputError, match="column 'v'"):
        check(UPDATE_BEFORE, group)


def test_a_retraction_without_a_sequence_does_not_concern_the_group() -> None:
    check(DELETE, {"merge-engine": "partial-update", **GROUP, **MAX}, g=None)


def test_rows_that_add_are_never_refused() -> None:
    for engine in ("first-row", "partial-update"):
        check(INSERT, {"merge-engine": engine})
    check(INSERT, {"merge-engine": "aggregation", **MAX})
