"""LookupSpec: when a key is the primary key, and which columns are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.lookup.lookup_spec import LookupSpec
from lakelsm.predicate.predicate import Compare
from tests.compact.local_table import LocalTable


@pytest.mark.parametrize(
    ("key", "expected"), [(("dt", "id"), True), (("id", "dt"), True), (("id",), False), (("id", "dt", "v"), False)]
)
def test_a_key_is_the_primary_key_by_its_columns_in_any_order(
    key: tuple[str, ...], expected: bool, tmp_path: Path
) -> None:
    table = LocalTable(tmp_path, "id INT NOT NULL, dt STRING NOT NULL, v STRING", ["id", "dt"], ["dt"])
    assert LookupSpec(table.store, key, ("v",)).by_primary_key is expected


def test_a_primary_key_that_lacks_a_partition_column_may_have_many_rows(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "id INT NOT NULL, dt STRING, v STRING", ["id"], ["dt"])
    assert not LookupSpec(table.store, ("id",), ("v",)).by_primary_key


def test_the_columns_of_the_condition_are_read_beside_those_looked_up(tmp_path: Path) -> None:
    store = LocalTable(tmp_path, "id INT NOT NULL, v STRING, w INT", ["id"]).store
    assert LookupSpec(store, ("id",), ("v",)).read_columns == {"v"}
    assert LookupSpec(store, ("id",), ("v",), predicate=Compare("w", ">", 1)).read_columns == {"v", "w"}
