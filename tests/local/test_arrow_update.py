"""Updates in this process: columns of every kind, many batches. tests/frames/test_update.py tests both engines."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError


def table_of(folder: Path, columns: str, **options: str) -> Table:
    return Catalog(str(folder)).create_table("db.t", columns, primary_key=["k"], options={"bucket": "1", **options})


def test_values_are_cast_to_the_columns_types(tmp_path: Path) -> None:
    columns = "k INT, c VARCHAR(3), t TIME, day DATE, ts TIMESTAMP(3), s TIMESTAMP(9), u TIMESTAMP(9), f FLOAT, b TINYINT"
    table = table_of(tmp_path, columns)
    nanos = pa.array([1_577_836_800_123_456_789], pa.timestamp("ns"))
    given = {"k": [1], "c": ["abc"], "t": [5], "day": [0], "ts": [0], "s": nanos, "u": [0], "f": [0.5], "b": [1]}
    kinds = {"k": pa.int32(), "t": pa.int32(), "day": pa.date32(), "ts": pa.timestamp("ms"), "u": pa.timestamp("ns")}
    kinds |= {"f": pa.float32(), "b": pa.int8()}
    table.write(pa.table({name: pa.array(values, kinds.get(name)) for name, values in given.items()}))
    values = {"c": "c || ''", "t": "t * 1000", "day": "DATE '2020-02-29'", "ts": "day", "u": "s"}
    values |= {"f": "1.5", "b": "f * 254"}
    assert table.update(values, "k = 1", engine="local").matched_rows == 1
    (row,) = table.to_arrow(timestamps="text").to_pylist()
    assert (row["u"], row["s"]) == ("2020-01-01 00:00:00.123456789",) * 2
    assert [str(row[name]) for name in ("c", "t", "day", "f", "b")] == ["abc", "00:00:05", "2020-02-29", "1.5", "127"]
    assert str(row["ts"]) == "1970-01-01 00:00:00", "of the old row"
    for wrong, message in (
        ({"c": "c || 'd'"}, r"'c' is longer than VARCHAR\(3\) allows"),
        ({"t": "86400000"}, "'t': a value is not a valid TIME"),
        ({"b": "f * 256"}, "'b': a new value does not fit TINYINT"),
        ({"day": "ts"}, "set: column 'day'"),
        ({"c": "5"}, "'c' is VARCHAR.3., but its new value is INT"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            table.update(wrong, "k = 1", engine="local")


@pytest.mark.parametrize("options", [{}, {"bucket": "3"}, {"bucket": "-1", "merge-engine": "partial-update"}], ids=str)
def test_rows_of_many_batches_and_files_are_updated_once(tmp_path: Path, options: dict[str, str]) -> None:
    table = table_of(tmp_path, "k INT, n BIGINT, v STRING", **options)
    for start in (0, 50_000):
        keys = pa.array(range(start, start + 150_000), pa.int32())
        table.write(pa.table({"k": keys, "n": keys.cast(pa.int64()), "v": pa.repeat(str(start), len(keys))}))
    result = table.update({"n": "n * 2 + if(v = '0', 1, 0)", "v": "concat(v, '!')"}, "k >= 10", engine="local")
    assert result.matched_rows == 199_990
    found = table.to_arrow(ordered=True)
    assert found.column("n").to_pylist() == [
        *range(10), *(2 * k + 1 for k in range(10, 50_000)), *(2 * k for k in range(50_000, 200_000))
    ]
    assert found.column("v").value_counts().to_pylist() == [
        {"values": "0", "counts": 10}, {"values": "0!", "counts": 49_990}, {"values": "50000!", "counts": 150_000}
    ]
