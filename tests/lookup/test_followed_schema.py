"""A lookup goes on under a newer schema of its table where that has its columns as they were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.lookup.followed_schema import followed
from lakelsm.lookup.lookup_spec import LookupSpec
from lakelsm.predicate.predicate import IsNotNull
from lakelsm.schema_changes import AddColumn, DropColumn, RenameColumn, SchemaChange, SetOption, UpdateColumnType
from tests.compact.local_table import LocalTable


def _spec(tmp_path: Path) -> tuple[LocalTable, LookupSpec]:
    table = LocalTable(tmp_path, "id INT NOT NULL, v STRING, w STRING, n INT")
    return table, LookupSpec(table.store, ("id",), ("v",), predicate=IsNotNull("n"))


def test_a_table_that_did_not_change_leaves_the_lookup_as_it_is(tmp_path: Path) -> None:
    _, spec = _spec(tmp_path)
    assert followed(spec) is spec


def test_options_of_the_table_follow_under_those_that_the_lookup_was_opened_with(tmp_path: Path) -> None:
    table, spec = _spec(tmp_path)
    own = spec.store.schema.with_options({**spec.store.schema.options, "lookup.cache-rows": "7"})
    spec = replace(spec, store=spec.store.with_schema(own))
    table.alter(AddColumn("x", "INT"), SetOption("lookup.cache-rows", "9"), SetOption("num-levels", "4"))
    options = followed(spec).store.options
    assert (options.lookup_cache_rows, options.num_levels) == (7, 4)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (DropColumn("v"), "no column 'v' any more"),
        (RenameColumn("v", "u"), "calls column 'v' 'u'"),
        (UpdateColumnType("n", "BIGINT"), "has column 'n' as BIGINT, which was INT"),
    ],
)
def test_a_column_of_the_lookup_that_changed_ends_it_by_name(change: SchemaChange, problem: str, tmp_path: Path) -> None:
    table, spec = _spec(tmp_path)
    table.alter(change)
    with pytest.raises(InvalidInputError, match=f"schema 1 .*{problem}.*open another one"):
        followed(spec)


def test_other_columns_may_change(tmp_path: Path) -> None:
    table, spec = _spec(tmp_path)
    table.alter(DropColumn("w"))
    assert followed(spec).store.schema.field_names == ("id", "v", "n")
