"""Lists of dicts, dicts of columns and lists of keys are written in the types of the table."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError

DAY = dt.date(2026, 1, 1)
COLUMNS = "id INT, price DECIMAL(10, 2), day DATE"
ROW = {"id": 1, "price": 1.5, "day": "2026-01-01"}


def table_in(path: Path, columns: str = COLUMNS, key: tuple[str, ...] = ("id",), **options: str) -> Table:
    given = {"bucket": "1", **{name.replace("_", "-"): value for name, value in options.items()}}
    return Catalog(str(path)).create_table("d.t", columns, primary_key=list(key), options=given)


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def test_rows_as_dicts_are_written_in_the_tables_types(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    result = table.write([ROW, {"id": 2, "day": DAY}])
    assert result.rows == 2 and rows_of(table) == [(1, Decimal("1.50"), DAY), (2, None, DAY)]
    assert table.write([]).rows == 0 and len(rows_of(table)) == 2
    table.write([{"ID": 1, "op": "-D", "price": None, "day": None}], row_kind="op")
    assert rows_of(table) == [(2, None, DAY)]
    table.overwrite(({"id": 3, "price": 3, "day": None},))
    assert rows_of(table) == [(3, Decimal("3.00"), None)]
    table.overwrite([])
    assert rows_of(table) == []


def test_columns_of_many_forms_are_written_together(tmp_path: Path) -> None:
    days = pd.Series([DAY, DAY])
    table = table_in(tmp_path, f"{COLUMNS}, s STRING, n BIGINT, o INT")
    codes = pa.chunked_array([["a"], ["b"]])
    big = np.array([1, 2], ">i4")
    price, mixed = np.array([1.5, 2.25]), np.array([None, 7])
    table.write({"day": days, "id": range(1, 3), "price": price, "s": codes, "n": big, "o": mixed})
    assert rows_of(table) == [(1, Decimal("1.50"), DAY, "a", 1, None), (2, Decimal("2.25"), DAY, "b", 2, 7)]


def test_a_partial_update_has_the_columns_that_some_dict_has(tmp_path: Path) -> None:
    table = table_in(tmp_path, merge_engine="partial-update")
    table.write([ROW])
    table.write([{"id": 1, "price": 2}])
    assert rows_of(table) == [(1, Decimal("2.00"), DAY)]


def test_the_error_has_the_number_of_the_first_faulty_row_over_all_batches_and_columns(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    rows = [{**ROW, "id": at} for at in range(70_000)]
    rows[-1] = {"id": 0, "price": 1.005, "day": DAY}
    rows[-2] = {"id": 0, "price": 1, "day": "x"}
    with pytest.raises(InvalidInputError, match=r"row 69999, column 'day': 'x' does not fit DATE\. Use text"):
        table.write(rows)
    assert rows_of(table) == []


REFUSED: list[tuple[Any, str]] = [
    ([ROW, 5], "frame, row 2: expected a dict, got 5. Pass a list of dicts, or a dict of columns."),
    ([{**ROW, 7: 1}], "a column's name in frame: expected a text, got "),
    ([{**ROW, "ID": 1}], "column ID, id occurs more than once in the frame"),
    ([{**ROW, "z": 1}], "the table has no column z"),
    ([{**ROW, "z": object()}], "column 'z' of frame has no Arrow type ("),
    ([{"id": 1}], "lacks column price, day of the table"),
    ({}, "lacks column id, price, day of the table"),
    ({**ROW, "id": [1]}, "column 'price' of frame: expected a list, a numpy array of one dimension, or"),
    ({**ROW, "id": "ab"}, "column 'id' of frame: expected a list"),
    ({"id": np.zeros((2, 2))}, "column 'id' of frame: expected a list"),
    ({"id": [1], "price": [1, 2]}, "frame: its columns differ in length ('id' has 1, 'price' has 2). Give each"),
    ({"id": np.array(["2026-01-01T10"], "datetime64[h]")}, "column 'id' of frame has no Arrow type ("),
    ({"id": pa.array(["a"]), 5: [1]}, "a column's name in frame: expected a text, got "),
    ((row for row in [ROW]), "frame: expected rows in memory (a list of dicts, a dict of columns, "),
    ((row for row in [ROW]), ". Write list(frame)."),
    ([{**ROW, "id": "1"}], "row 1, column 'id': '1' does not fit INT"),
]


def test_other_values_than_rows_are_refused_with_the_accepted_forms(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    for frame, message in REFUSED:
        with pytest.raises(InvalidInputError, match=re.escape(message)):
            table.write(frame)
    assert rows_of(table) == []


@pytest.mark.parametrize("value", [[{"a": 1, "b": 2}], ["ab"], [5], [(1,)], {"x": {}}])
def test_a_value_that_is_not_a_map_does_not_fit_a_map_column(tmp_path: Path, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"row 1, column 'm': .* does not fit MAP<STRING, INT>"):
        table_in(tmp_path, "id INT, m MAP<STRING, INT>").write([{"id": 1, "m": value}])


def test_keys_are_values_or_tuples_or_rows(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    columns = (np.array([7, 8]), pd.Series([7, 8]), pd.Index([8, 7]), pa.array([7, 8]), pa.chunked_array([[7], [8]]))
    for keys in (*columns, [7, 8], {7, 8}, range(7, 9), [{"id": 7}, {"id": 8}], {"id": [7.0, 8]}, [8, 7, 99]):
        table.write([{**ROW, "id": at} for at in (6, 7, 8)])
        assert table.delete(keys=keys).matched_rows == 2 and [row[0] for row in rows_of(table)] == [6]
    assert table.delete(keys=[]).matched_rows == 0
    for wrong, message in (
        (7, "Write [keys]."),
        (["a"], "row 1, column 'id': 'a' does not fit INT"),
        ([6, 2**40], "row 2, column 'id': 1099511627776 does not fit INT"),
        ([6, None], "key column 'id' is NULL"),
        ([{"id": 6, "price": 1}], "(id); price is not one of them"),
    ):
        with pytest.raises(InvalidInputError, match=re.escape(message)):
            table.delete(keys=wrong)
    assert len(rows_of(table)) == 1


def test_a_key_of_several_columns_is_a_tuple(tmp_path: Path) -> None:
    table = table_in(tmp_path, "a INT, day DATE, v INT", ("day", "a"))
    table.write([{"a": at, "day": DAY, "v": at} for at in range(3)])
    assert table.delete(keys=[("2026-01-01", 1), (DAY, 2)]).matched_rows == 2
    assert rows_of(table) == [(0, DAY, 0)]
    for wrong in ([5], [("2026-01-01",)], [(DAY, 0), (1, 2, 3)], ["ab"]):
        with pytest.raises(InvalidInputError, match="expected a tuple of 2 values, those of the primary key day, a"):
            table.delete(keys=wrong)


def test_strict_casts_accept_only_types_whose_every_value_fits(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    longs = pa.table({"id": [1], "price": pa.array([None], pa.decimal128(10, 2)), "day": [DAY]})
    for write in (table.write, table.overwrite):
        with pytest.raises(InvalidInputError, match="column 'id' is int64 in the frame and int32"):
            write(longs, cast="strict")
        with pytest.raises(InvalidInputError, match="cast: expected 'safe' or 'strict'"):
            write(longs, cast="exact")
        assert write(longs).rows == write([ROW], cast="strict").rows == 1


def test_an_overwrite_warns_of_consumers_that_do_not_see_it(tmp_path: Path) -> None:
    table = table_in(tmp_path, changelog_producer="input")
    table.overwrite([ROW])
    table.consumers.record("feed", 2)
    with pytest.warns(UserWarning, match=r"no changelog contains snapshot 2, .* \(feed\) do not see"):
        result = table.overwrite([ROW], commit_user="job", batch_id=1)
    assert result.after_commit_failures == () and table.overwrite([ROW], commit_user="job", batch_id=1).already_committed


def test_rows_of_a_multiset_are_written_updated_and_deleted(tmp_path: Path) -> None:
    columns = {"id": "INT", "v": "INT", "x": "MULTISET<STRING>"}
    table = Catalog(str(tmp_path)).create_table("db.t", columns, primary_key="id")
    table.write([{"id": 1, "v": 1, "x": {"a": 2}}, {"id": 2, "v": 1, "x": [("b", 1)]}, {"id": 3}])
    table.update({"v": "v + 1"}, "id = 1", engine="local")
    table.delete("id = 2", engine="local")
    assert table.to_arrow(ordered=True).to_pylist() == [
        {"id": 1, "v": 2, "x": [("a", 2)]}, {"id": 3, "v": None, "x": None},
    ]  # fmt: skip
