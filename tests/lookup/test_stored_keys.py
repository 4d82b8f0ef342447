"""StoredKeys: which of the keys that a user gives a row can have, and their stored form."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.lookup.lookup_spec import LookupSpec
from lakelsm.lookup.stored_keys import StoredKeys
from lakelsm.types import parse_columns, to_arrow
from tests.compact.local_table import LocalTable


def keys_of(folder: Path, kind: str, given: pa.Array) -> tuple[list[int], list[Any]]:
    table = LocalTable(folder, f"k {kind} NOT NULL, v STRING", ["k"])
    found = StoredKeys.of([given], LookupSpec(table.store, ("k",), ("v",)))
    assert found.keys.column("k").type == to_arrow(parse_columns(f"k {kind}")[0].type)
    return found.places.tolist(), found.keys.column("k").to_pylist()


@pytest.mark.parametrize(
    ("kind", "given", "stored"),
    [
        ("BIGINT", pa.array([1, -2], pa.int32()), [1, -2]),
        ("DECIMAL(10, 2)", pa.array([Decimal("1.5")], pa.decimal128(5, 1)), [Decimal("1.50")]),
        ("STRING", pa.array(["a", ""], pa.large_string()), ["a", ""]),
        ("STRING", pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        ("DATE", pa.array([date(2026, 1, 2)]), [date(2026, 1, 2)]),
        ("DOUBLE", pa.array([-0.0, 1.5]), [0.0, 1.5]),
    ],
)
def test_values_of_other_types_are_stored_as_the_column_has_them(
    kind: str, given: pa.Array, stored: list[Any], tmp_path: Path
) -> None:
    places, keys = keys_of(tmp_path, kind, given)
    assert (places, keys) == (list(range(len(stored))), stored)
    assert [str(key) for key in keys] == [str(key) for key in stored]


def test_null_is_no_key_of_a_row(tmp_path: Path) -> None:
    assert keys_of(tmp_path, "INT", pa.array([None, 5, None], pa.int32())) == ([1], [5])


def test_a_time_that_is_finer_than_the_columns_is_no_key_of_a_row(tmp_path: Path) -> None:
    exact, finer = datetime(2026, 1, 1, 0, 0, 0, 123000), datetime(2026, 1, 1, 0, 0, 0, 123001)
    given = pa.array([finer, exact, None], pa.timestamp("us"))
    assert keys_of(tmp_path, "TIMESTAMP(3)", given) == ([1], [exact])


def test_a_key_of_several_columns_needs_a_value_in_each(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "a INT NOT NULL, b STRING NOT NULL, v STRING", ["a", "b"])
    spec = LookupSpec(table.store, ("b", "a"), ("v",))
    found = StoredKeys.of([pa.array(["x", None, "z"]), pa.array([1, 2, 3])], spec)
    assert found.places.tolist() == [0, 2]
    assert found.keys.to_pydict() == {"b": ["x", "z"], "a": [1, 3]}
