"""Times with nanoseconds in files are exact over millennia, flat and nested, from every writer."""

from __future__ import annotations

import struct
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.format.data_file.int96_timestamps import INT96, from_int96, to_int96
from lakelsm.format.data_file.key_value_file import KeyValueReader, row_schema
from lakelsm.format.data_file.parquet_footer import Int96Sink
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.table_schema import TableSchema, column_mapping, create_schema
from lakelsm.schema_changes import UpdateColumnType
from lakelsm.types import parse_type
from tests.examples import examples
from tests.merge.run_files import IO, layout_of, rows_table, write_files
from tests.nano_times import times_of_nanos

DAY = 86_400_000_000_000

FIRST, LAST = -62_135_596_800_000_000_000, 253_402_300_799_999_999_999

NANOS = st.none() | st.integers(FIRST, LAST) | st.sampled_from([FIRST, FIRST + 1, LAST, -1, -DAY, -DAY - 1, 0, 1])


def raw(*times: tuple[int, int] | None) -> pa.Array:
    """Return INT96 values from (days since the epoch, nanoseconds)."""
    return pa.array([time and struct.pack("<qi", time[1], time[0] + 2_440_588) for time in times], INT96)


def read(path: Path, schema: TableSchema, now: TableSchema | None = None) -> pa.Table:
    reader = KeyValueReader(IO.filesystem(), str(path), column_mapping(schema, now or schema))
    return pa.concat_tables(rows for _, rows in reader.batches(lambda: 100))


def foreign_file(path: Path, columns: dict[str, pa.Array]) -> None:
    """Write a file as another engine does; its INT96 columns are given as by `raw`."""
    rows = len(next(iter(columns.values())))
    system = {"_SEQUENCE_NUMBER": pa.array(range(rows), pa.int64()), "_VALUE_KIND": pa.array([0] * rows, pa.int8())}
    table = pa.table({**system, "k": pa.array(range(rows), pa.int32()), **columns})
    buffer = BytesIO()
    sink = Int96Sink(buffer)
    with pq.ParquetWriter(sink, table.schema, store_schema=False, write_statistics=False) as writer:
        writer.write_table(table, row_group_size=2)
        sink.begin_footer()
    sink.finish()
    path.write_bytes(buffer.getvalue())


@given(st.lists(NANOS, max_size=20), st.integers(0, 3))
def test_int96_values_are_read_back_and_have_no_negative_nanoseconds(nanos: list[int | None], start: int) -> None:
    times = times_of_nanos(nanos).slice(start) if nanos else times_of_nanos([None]).slice(1)
    stored = to_int96(times)
    assert from_int96(stored).equals(times)
    for value, wanted in zip(stored.to_pylist(), nanos[start:]):
        if wanted is not None:
            assert struct.unpack("<qi", value) == (wanted % DAY, wanted // DAY + 2_440_588)


def test_negative_nanoseconds_of_the_day_are_java_s_times_before_1970() -> None:
    found = from_int96(raw((0, -1), (-1, -DAY + 1), None, (-719_162, -1)))
    assert found.equals(times_of_nanos([-1, -2 * DAY + 1, None, FIRST - 1]))


def test_a_time_outside_the_range_of_microseconds_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="294246"):
        from_int96(raw((2**31 - 2_440_589, 0)))


NESTED = """
    k INT, a ROW<x TIMESTAMP(9), y TIMESTAMP(6)>, b ARRAY<TIMESTAMP(9)>, m MAP<STRING, TIMESTAMP(7)>, t TIMESTAMP(8)
"""


@examples(40)
@given(
    st.lists(
        st.tuples(st.none() | st.tuples(NANOS, NANOS), st.none() | st.lists(NANOS, max_size=4), st.none() | NANOS, NANOS),
        min_size=1,
        max_size=8,
    )
)
def test_nested_times_of_any_year_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]
) -> None:
    schema = create_schema(NESTED, ["k"], (), {"bucket": "1"})
    kinds = {field.name: field.type for field in row_schema(schema.fields)}
    row, lists, entries, flat = zip(*rows)
    micros = cast_column(times_of_nanos([pair and pair[1] for pair in row]), pa.timestamp("us"))
    members = [times_of_nanos([pair and pair[0] for pair in row]), micros]
    offsets = pa.array([sum(len(found or ()) for found in lists[:at]) for at in range(len(lists) + 1)], pa.int32())
    elements = times_of_nanos([nanos for found in lists for nanos in found or ()] or [None])
    columns = {
        "a": pa.StructArray.from_arrays(members, fields=list(kinds["a"]), mask=pa.array([pair is None for pair in row])),
        "b": pa.ListArray.from_arrays(offsets, elements, kinds["b"], mask=pa.array([found is None for found in lists])),
        "m": pa.MapArray.from_arrays(range(len(rows) + 1), ["x"] * len(rows), times_of_nanos(entries), kinds["m"]),
        "t": times_of_nanos(flat),
    }
    table = rows_table(schema, [(at, 0, {"k": at}) for at in range(len(rows))])
    for name, column in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), column)
    directory = tmp_path_factory.mktemp("nested")
    (meta,) = write_files(directory, layout_of(schema, row_group_bytes=1), [table])
    assert read(directory / meta.file_name, schema).to_pylist() == table.to_pylist()


def test_nested_times_of_another_writer_are_read_exactly(tmp_path: Path) -> None:
    schema = create_schema("k INT, b ARRAY<TIMESTAMP(9)>, a ROW<x TIMESTAMP(9)>", ["k"], (), {"bucket": "1"})
    times = raw((-719_162, -1), (0, -1), None, (2_932_896, 1))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 4], pa.int32()), times)
    rows = pa.StructArray.from_arrays([times.slice(0, 3)], ["x"])
    foreign_file(tmp_path / "java.parquet", {"b": lists, "a": rows})
    found = read(tmp_path / "java.parquet", schema)
    wanted = times_of_nanos([FIRST - 1, -1, None, 2_932_896 * DAY + 1]).to_pylist()
    assert found.column("b").to_pylist() == [wanted[:2], [], wanted[2:]]
    assert [row["x"] for row in found.column("a").to_pylist()] == wanted[:3]


def test_files_with_int96_for_all_times_are_read_in_the_precision_of_each_column(tmp_path: Path) -> None:
    """Arrow writes such files, and earlier versions of lakelsm did."""
    schema = create_schema("k INT, t TIMESTAMP(6), u TIMESTAMP(3), n TIMESTAMP(9)", ["k"], (), {"bucket": "1"})
    foreign_file(tmp_path / "old.parquet", dict.fromkeys(("t", "u", "n"), raw((0, -1), (2_932_896, DAY - 1))))
    found = read(tmp_path / "old.parquet", schema)
    assert found.column("t").cast(pa.int64()).to_pylist() == [-1, LAST // 1000]
    assert found.column("u").cast(pa.int64()).to_pylist() == [-1, LAST // 1_000_000]
    assert found.column("n").combine_chunks().equals(times_of_nanos([-1, LAST]))


def test_a_widened_column_s_old_times_keep_their_values(tmp_path: Path) -> None:
    old = create_schema("k INT, t TIMESTAMP(6)", ["k"], (), {"bucket": "1"})
    new = apply_changes(old, [UpdateColumnType("t", parse_type("TIMESTAMP(9)"))], 0)
    times = cast_column(times_of_nanos([LAST - 999, FIRST, None]), pa.timestamp("us"))
    foreign_file(tmp_path / "old.parquet", {"t": times})
    found = read(tmp_path / "old.parquet", old, new)
    assert found.column("t").combine_chunks().equals(times_of_nanos([LAST - 999, FIRST, None]))
