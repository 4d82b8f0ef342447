"""The common properties of all caches: the lookup that they answer, and the form of the rows found."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.lookup.cache import FoundRows, LookupSpec, key_row, python_rows
from lakelsm.predicate.predicate import Compare, IsNotNull
from lakelsm.schema_changes import AddColumn, DropColumn, RenameColumn, SchemaChange, SetOption, UpdateColumnType
from lakelsm.types import arrow_field, parse_columns, to_arrow
from tests.compact.local_table import LocalTable


def test_a_key_is_the_primary_key_by_its_columns_in_any_order(tmp_path: Path) -> None:
    store = LocalTable(tmp_path / "t", "id INT NOT NULL, dt STRING NOT NULL, v STRING", ["id", "dt"], ["dt"]).store
    for key, expected in ((("dt", "id"), True), (("id", "dt"), True), (("id",), False), (("id", "dt", "v"), False)):
        assert LookupSpec(store, key, ("v",)).by_primary_key is expected
    lacking = LocalTable(tmp_path / "u", "id INT NOT NULL, dt STRING, v STRING", ["id"], ["dt"]).store
    assert not LookupSpec(lacking, ("id",), ("v",)).by_primary_key, "each partition may have a row of the key"


def test_the_columns_of_the_condition_are_read_beside_those_looked_up(tmp_path: Path) -> None:
    store = LocalTable(tmp_path, "id INT NOT NULL, v STRING, w INT", ["id"]).store
    assert LookupSpec(store, ("id",), ("v",)).read_columns == {"v"}
    assert LookupSpec(store, ("id",), ("v",), predicate=Compare("w", ">", 1)).read_columns == {"v", "w"}


def _spec(tmp_path: Path) -> tuple[LocalTable, LookupSpec]:
    table = LocalTable(tmp_path, "id INT NOT NULL, v STRING, w STRING, n INT")
    return table, LookupSpec(table.store, ("id",), ("v",), predicate=IsNotNull("n"))


def test_the_newest_schema_has_its_options_below_those_that_the_lookup_was_opened_with(tmp_path: Path) -> None:
    table, spec = _spec(tmp_path)
    assert spec.on_newest_schema() is spec
    own = spec.store.schema.with_options({**spec.store.schema.options, "lookup.cache-rows": "7"})
    spec = replace(spec, store=spec.store.with_schema(own))
    table.alter(AddColumn("x", "INT"), SetOption("lookup.cache-rows", "9"), SetOption("num-levels", "4"))
    options = spec.on_newest_schema().store.options
    assert (options.lookup_cache_rows, options.num_levels) == (7, 4)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (DropColumn("v"), "has dropped column 'v'"),
        (RenameColumn("v", "u"), "has renamed column 'v' to 'u'"),
        (UpdateColumnType("n", "BIGINT"), "has changed the type of column 'n' from INT to BIGINT"),
        (DropColumn("w"), None),
    ],
)
def test_a_changed_column_that_the_lookup_needs_is_an_error(
    change: SchemaChange, problem: str | None, tmp_path: Path
) -> None:
    table, spec = _spec(tmp_path)
    table.alter(change)
    if problem is None:
        assert spec.on_newest_schema().store.schema.field_names == ("id", "v", "n")
        return
    with pytest.raises(InvalidInputError, match=f"schema 1 .*{problem}.*Open another lookup"):
        spec.on_newest_schema()


def found(probes: list[int], rows: list[str]) -> FoundRows:
    return FoundRows(np.array(probes, np.int64), pa.table({"v": pa.array(rows, pa.string())}))


def test_combined_rows_have_the_order_of_the_keys_and_within_a_key_that_of_the_lookups() -> None:
    together = FoundRows.combined([found([0, 2, 2], ["a", "b", "c"]), found([], []), found([0, 1], ["d", "e"])])
    assert together.probes.tolist() == [0, 0, 1, 2, 2]
    assert together.rows.column("v").to_pylist() == ["a", "d", "e", "b", "c"]
    only = found([1], ["a"])
    assert FoundRows.combined([only]) is only


@pytest.mark.parametrize(
    ("kind", "value"), [("INT", 7), ("TIMESTAMP(3)", datetime(2026, 1, 2)), ("TIMESTAMP(9)", bytes(10))]
)
def test_a_stored_key_is_unchanged_in_its_row(kind: str, value: object) -> None:
    fields = parse_columns(f"k {kind}, b STRING")
    stored = pa.array([value], to_arrow(fields[0].type))
    row = key_row((stored.to_pylist()[0], "x"), fields)
    assert row.equals(pa.table({"k": stored, "b": ["x"]}))


def test_python_rows_have_the_requested_columns_in_the_form_for_users() -> None:
    fields = parse_columns("d DATE, n INT")
    rows = pa.table({"n": [1, 2], "d": [date(2026, 1, 2), None]}, pa.schema([arrow_field(each) for each in fields[::-1]]))
    assert python_rows(rows, fields) == [(date(2026, 1, 2), 1), (None, 2)]
    assert python_rows(rows, fields[1:]) == [(1,), (2,)]
    assert python_rows(rows, ()) == [(), ()]
    with pytest.raises(UnsupportedFeatureError, match=r"a row has a time that Python cannot represent .*Arrow"):
        python_rows(pa.table({"d": pa.array([9_999_999], pa.date32())}), fields[:1])
