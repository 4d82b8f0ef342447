"""Updates: which columns of which tables can be set, and which rules the new rows must obey."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError
from lakelsm.plan.update_plan import RowSequence, UpdatePlan, plan_update
from lakelsm.snapshots.table_store import TableStore

COLUMNS = "dt STRING, k INT, a INT, b STRING NOT NULL, s INT, t INT, kind STRING"
PARTIAL = {"merge-engine": "partial-update"}
GROUPED = {**PARTIAL, "fields.s,t.sequence-group": "a"}


def store(path: Path, options: dict[str, str], columns: str = COLUMNS) -> TableStore:
    given = {"bucket": "1", **options}
    Catalog(str(path)).create_table("d.t", columns, primary_key=["dt", "k"], partition_by=["dt"], options=given)
    return TableStore.open(str(path / "d.db" / "t"))


@pytest.mark.parametrize(
    ("options", "values", "plan"),
    [
        ({}, {"A": "a + 1", "b": "''"}, UpdatePlan({"a": "a + 1", "b": "''"}, required=frozenset("b"))),
        ({"sequence.field": "s,t"}, {"a": "1"}, UpdatePlan({"a": "1"})),
        ({"sequence.field": "s,t"}, {"t": "1"}, UpdatePlan({"t": "1"}, sequences=(RowSequence(("s", "t")),))),
        (
            {"sequence.field": "s", "sequence.field.sort-order": "descending"},
            {"s": "1"},
            UpdatePlan({"s": "1"}, sequences=(RowSequence(("s",), descending=True),)),
        ),
        (PARTIAL, {"a": "1"}, UpdatePlan({"a": "1"}, kept_by_null=frozenset("a"))),
        (GROUPED, {"a": "1"}, UpdatePlan({"a": "1"}, sequences=(RowSequence(("s", "t"), required=True),))),
        (GROUPED, {"t": "1"}, UpdatePlan({"t": "1"}, sequences=(RowSequence(("s", "t"), required=True),))),
        (GROUPED, {"kind": "1"}, UpdatePlan({"kind": "1"}, kept_by_null=frozenset(["kind"]))),
        (
            {**GROUPED, "fields.a.aggregate-function": "last_non_null_value"},
            {"a": "1"},
            UpdatePlan({"a": "1"}, sequences=(RowSequence(("s", "t"), required=True),), kept_by_null=frozenset("a")),
        ),
    ],
)
def test_an_update_states_the_rules_for_its_rows(
    tmp_path: Path, options: dict[str, str], values: dict[str, str], plan: UpdatePlan
) -> None:
    assert plan_update(store(tmp_path, options), values) == plan


@pytest.mark.parametrize(
    ("options", "values", "text"),
    [
        ({}, {"k": "1"}, "set: column 'k' is part of the primary key"),
        ({}, {"DT": "1"}, "set: column 'dt' is a partition column"),
        ({}, {"c": "1"}, "set: column 'c' does not exist. Columns: dt, k, a"),
        ({}, {"_SEQUENCE_NUMBER": "1"}, "column '_SEQUENCE_NUMBER' does not exist"),
        ({}, {"a": "1", "A": "2"}, "set: column 'a' occurs twice"),
        ({"rowkind.field": "kind"}, {"kind": "'+I'"}, "has the kind of the row"),
        ({"merge-engine": "first-row"}, {"a": "1"}, "'first-row' keeps the first row"),
        ({"merge-engine": "aggregation"}, {"a": "1"}, "'aggregation' adds a new row"),
        ({**GROUPED, "fields.a.aggregate-function": "sum"}, {"kind": "1"}, "aggregate function 'sum' of column 'a'"),
    ],
)
def test_updates_that_are_not_possible_are_refused_by_name(
    tmp_path: Path, options: dict[str, str], values: dict[str, str], text: str
) -> None:
    made = store(tmp_path, options)
    with pytest.raises(InvalidInputError, match=text):
        plan_update(made, values)
