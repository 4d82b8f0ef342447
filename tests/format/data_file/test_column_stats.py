"""Column statistics: modes, truncation and order of values; they equal those that Java wrote into manifests."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError
from lakelsm.format.data_file.column_stats import COUNTS, FULL, KEY_MODE, NONE, StatsCollector, StatsMode, column_modes
from lakelsm.format.manifest.data_file_meta import EMPTY_STATS, DataFileMeta
from lakelsm.format.row.binary_row import decode_row, decode_rows, encode_row
from lakelsm.format.row.binary_row_slots import TIMESTAMP_ROOTS
from lakelsm.types import BINARY_ROOTS, AtomicType, DataField, DataType, parse_type, to_arrow
from tests.format.row.binary_row_cases import arrow_column, java_entries, rows_of_types
from tests.golden_tables import GoldenTable
from tests.nano_times import times_of_nanos

ARRAY_OF_INT = {"type": "ARRAY", "element": "INT"}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
K_S_N_A = [
    DataField(index, name, parse_type(text))
    for index, (name, text) in enumerate(
        [("k", "INT NOT NULL"), ("s", "STRING"), ("n", "BIGINT"), ("a", ARRAY_OF_INT)]  # type: ignore[list-item]
    )
]
TWO_ROWS = pa.table(
    {"k": pa.array([1, 2], pa.int32()), "s": [LETTERS, "zz" + LETTERS], "n": [7, None], "a": [[1], None]}
)


def collected(
    fields: list[DataField], modes: list[StatsMode], *batches: pa.Table, dense: bool = True
) -> tuple[Any, tuple[str, ...] | None]:
    collector = StatsCollector(fields, modes, dense)
    for batch in batches:
        collector.update(batch)
    return collector.finish()


def bounds(
    values: pa.Array | pa.ChunkedArray, data_type: DataType, mode: StatsMode = FULL
) -> tuple[Any, Any, int]:
    """Return (min, max, null count) of one column."""
    stats, _ = collected([DataField(0, "c", data_type)], [mode], pa.table({"c": values}))
    return (
        decode_row(stats.min_values, [data_type])[0],
        decode_row(stats.max_values, [data_type])[0],
        stats.null_counts[0],
    )


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("none", NONE),
        ("Counts", COUNTS),
        ("FULL", FULL),
        ("truncate(16)", StatsMode(True, True, 16)),
        ("TRUNCATE(128)", KEY_MODE),
    ],
)
def test_modes_are_read_in_any_case(text: str, mode: StatsMode) -> None:
    assert StatsMode.parse(text) == mode


@pytest.mark.parametrize("text", ["", "all", "truncate", "truncate(0)", "truncate(-1)", "truncate(16) "])
def test_unknown_modes_are_refused_with_the_text_named(text: str) -> None:
    with pytest.raises(InvalidInputError, match="statistics mode"):
        StatsMode.parse(text)


def test_a_columns_own_mode_comes_first_then_thin_keys_then_the_first_n() -> None:
    own = {"d": {"stats-mode": "counts"}, "b": {"aggregate-function": "sum"}}
    assert column_modes("abcd", "full", own) == (FULL, FULL, FULL, COUNTS)
    assert column_modes("abcd", FULL, own, keep_first_n=2) == (FULL, FULL, NONE, COUNTS)
    assert column_modes("abcd", FULL, own, keep_first_n=0) == (NONE, NONE, NONE, COUNTS)
    assert column_modes("abcd", NONE, own, thin_keys=["a"]) == (KEY_MODE, NONE, NONE, COUNTS)
    assert column_modes("abcd", FULL, None, 1, thin_keys=["a"]) == (KEY_MODE, FULL, NONE, NONE)
    assert column_modes("ab", FULL, {"a": {"stats-mode": "none"}}, 1, thin_keys=["a"]) == (NONE, NONE)


def test_dense_statistics_omit_columns_without_statistics() -> None:
    modes = list(column_modes(["k", "s", "n", "a"], "truncate(16)"))
    stats, columns = collected(K_S_N_A, modes, TWO_ROWS)
    types = [field.type for field in K_S_N_A[:3]]
    assert columns == ("k", "s", "n")
    assert decode_row(stats.min_values, types) == (1, "abcdefghijklmnop", 7)
    assert decode_row(stats.max_values, types) == (2, "zzabcdefghijklmo", 7)
    assert stats.null_counts == (0, 0, 1)


def test_statistics_that_are_not_dense_have_null_slots_for_columns_without_statistics() -> None:
    stats, columns = collected(K_S_N_A, [NONE] * 4, TWO_ROWS, dense=False)
    assert columns is None
    assert stats.min_values == stats.max_values == bytes.fromhex("00000004 000f000000000000") + bytes(32)
    assert stats.null_counts == (None,) * 4


def test_modes_without_bounds_still_count_nulls() -> None:
    stats, columns = collected(K_S_N_A, [COUNTS] * 4, TWO_ROWS)
    assert columns == ("k", "s", "n")
    assert stats.null_counts == (0, 0, 1)
    assert decode_row(stats.min_values, [field.type for field in K_S_N_A[:3]]) == (None, None, None)


def test_statistics_of_no_column_are_empty_rows() -> None:
    assert collected(K_S_N_A, [NONE] * 4, TWO_ROWS) == (EMPTY_STATS, ())
    assert collected([], []) == (EMPTY_STATS, None)


def test_columns_are_not_named_if_all_have_statistics() -> None:
    assert collected(K_S_N_A[:3], [FULL] * 3, TWO_ROWS)[1] is None


@pytest.mark.parametrize(
    ("low", "high", "length", "expected"),
    [
        ("abc", "abd", 3, ("abc", "abd")),
        ("abcd", "abzz", 2, ("ab", "ac")),
        ("a", "zzzz", 2, ("a", "z{")),
        ("aaaa", "b", 2, ("aa", "b")),
        ("中文数据", "中文数据", 2, ("中文", "中斈")),
        ("😀😀😀", "😀😀😀", 1, ("😀", "😁")),
        ("a", "b\U0010ffff\U0010ffff", 2, ("a", "c")),
        ("a", "\U0010ffff" * 3, 2, (None, None)),
        ("a", "\ud7ff\ud7ff", 1, ("a", "\ue000")),
        ("", "", 1, ("", "")),
    ],
)
def test_text_is_cut_by_characters_and_the_upper_bound_is_increased(
    low: str, high: str, length: int, expected: tuple[str | None, str | None]
) -> None:
    found = bounds(pa.array([low, high, None]), parse_type("STRING"), StatsMode(True, True, length))
    assert found == (*expected, 1)


@pytest.mark.parametrize("name", ["BINARY(2)", "VARBINARY(9)", "BYTES"])
@pytest.mark.parametrize("mode", [FULL, KEY_MODE, StatsMode(True, True, 2), COUNTS])
def test_binaries_have_null_counts_and_no_bounds(name: str, mode: StatsMode) -> None:
    for values in ([b"\x01\x02", None, b"\x7f\x00"], [b"\x80\xff", b"\x00\x00", None], [None]):
        assert bounds(pa.array(values, pa.binary()), parse_type(name), mode) == (None, None, 1)


def test_text_compares_as_unsigned_bytes() -> None:
    assert bounds(pa.array(["é", "z", "中", "😀"]), parse_type("STRING")) == ("z", "😀", 0)


@pytest.mark.parametrize("name", ["FLOAT", "DOUBLE"])
def test_a_column_with_a_nan_has_no_bounds(name: str) -> None:
    data_type = parse_type(name)
    for values in ([1.0, math.nan], [1.0, math.nan, None], [math.nan]):
        low, high, nulls = bounds(pa.array(values, to_arrow(data_type)), data_type)
        assert (low, high, nulls) == (None, None, values.count(None))
    later = [pa.table({"c": pa.array(part, to_arrow(data_type))}) for part in ([math.nan], [1.0])]
    stats, _ = collected([DataField(0, "c", data_type)], [FULL], *later)
    assert decode_row(stats.max_values, [data_type]) == (None,)


@pytest.mark.parametrize("name", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize("values", [[0.0], [-0.0], [0.0, -0.0], [-0.0, None, 0.0]])
def test_bounds_of_zero_include_both_zeros(name: str, values: list[float | None]) -> None:
    low, high, _ = bounds(pa.array(values, to_arrow(parse_type(name))), parse_type(name))
    assert (math.copysign(1, low), math.copysign(1, high)) == (-1.0, 1.0)


def test_infinities_are_bounds() -> None:
    assert bounds(pa.array([math.inf, -math.inf, None]), parse_type("DOUBLE")) == (-math.inf, math.inf, 1)


def test_bounds_of_nanosecond_timestamps_are_rounded_outwards_to_microseconds() -> None:
    nanos = parse_type("TIMESTAMP(9)")
    column = pa.array([-1, 1_500, 3_000_001], pa.timestamp("ns"))
    stats, _ = collected([DataField(0, "c", nanos)], [FULL], pa.table({"c": column}))
    for row, expected in ((stats.min_values, -1_000), (stats.max_values, 3_001_000)):
        assert decode_rows([row], [nanos])[0].equals(times_of_nanos([expected]))


def test_finer_units_are_bounded_by_the_values_that_the_file_stores() -> None:
    millis = parse_type("TIMESTAMP(3)")
    found = bounds(pa.array([-1, 1_999], pa.timestamp("us")), millis)
    assert found == (datetime(1969, 12, 31, 23, 59, 59, 999000), datetime(1970, 1, 1, 0, 0, 0, 1000), 0)
    both = [pa.table({"c": pa.array([5], pa.timestamp(unit))}) for unit in ("s", "ns")]
    stats, _ = collected([DataField(0, "c", millis)], [FULL], *both)
    assert decode_row(stats.min_values, [millis])[0] == datetime(1970, 1, 1)
    assert decode_row(stats.max_values, [millis])[0] == datetime(1970, 1, 1, 0, 0, 5)


def test_dictionaries_views_and_chunks_have_the_bounds_of_their_values() -> None:
    text = parse_type("STRING")
    words = ["pear", "apple", None, "zebra"]
    plain = pa.array(words)
    expected = ("apple", "zebra", 1)
    unused = pa.DictionaryArray.from_arrays(
        pa.array([1, 0, None, 2]), ["apple", "pear", "zebra", "zzz", "aaa"]
    )
    null_inside = pa.DictionaryArray.from_arrays(pa.array([1, 0, 3, 2]), ["apple", "pear", "zebra", None])
    layouts = [plain, plain.cast(pa.large_string()), plain.cast(pa.string_view()), unused, null_inside]
    for layout in layouts:
        assert bounds(layout, text) == expected
        assert bounds(pa.chunked_array([layout[:2], layout[2:]]), text) == expected
        assert bounds(layout[1:3], text) == ("apple", "apple", 1)


def test_columns_of_nulls_and_of_no_rows_have_only_counts() -> None:
    for name in ("STRING", "DOUBLE", "DECIMAL(20, 2)", "TIMESTAMP(6)", "BOOLEAN"):
        data_type = parse_type(name)
        assert bounds(pa.nulls(3, to_arrow(data_type)), data_type) == (None, None, 3)
        assert bounds(pa.nulls(3), data_type) == (None, None, 3)
        assert bounds(pa.array([], to_arrow(data_type)), data_type) == (None, None, 0)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(InvalidInputError, match="'n'"):
        collected(K_S_N_A, [FULL] * 4, TWO_ROWS.drop_columns(["n"]))


def test_text_that_is_not_utf8_has_no_bounds() -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"]).buffers())
    assert bounds(broken, parse_type("STRING")) == (None, None, 0)


@given(rows_of_types(max_fields=5), st.integers(0, 20))
def test_bounds_enclose_every_value_for_all_batches(
    drawn: tuple[list[AtomicType], list[tuple[Any, ...]]], cut: int
) -> None:
    types, rows = drawn
    fields = [DataField(index, f"c{index}", data_type) for index, data_type in enumerate(types)]
    table = pa.table(
        {field.name: arrow_column([row[field.id] for row in rows], types[field.id]) for field in fields}
    )
    whole = collected(fields, [FULL] * len(fields), table)
    batches = [table[:cut], table[cut:]]
    assert collected(fields, [FULL] * len(fields), *batches) == whole
    merged = pa.concat_tables(batches).to_batches()
    assert collected(fields, [FULL] * len(fields), *merged) == whole
    for index, data_type in enumerate(types):
        values = sorted(row[index] for row in rows if row[index] is not None)
        assert whole[0].null_counts[index] == len(rows) - len(values)
        found = decode_rows([whole[0].min_values, whole[0].max_values], types)[index]
        if not values or data_type.root in BINARY_ROOTS:
            assert found.null_count == 2
        elif data_type.precision != 9:
            if data_type.root in ("CHAR", "VARCHAR"):
                values.sort(key=str.encode)
            expected = arrow_column([values[0], values[-1]], data_type)
            assert found.equals(expected) or 0 in values


@given(st.text(max_size=8), st.integers(1, 5))
def test_cut_bounds_enclose_the_text(text: str, length: int) -> None:
    low, high, _ = bounds(pa.array([text]), parse_type("STRING"), StatsMode(True, True, length))
    if low is None:
        assert set(text[:length]) == {"\U0010ffff"}
    else:
        assert len(low) <= length >= len(high)
        assert low.encode() <= text.encode() <= high.encode()


def test_decimals_dates_and_booleans_have_bounds() -> None:
    wide = pa.array([Decimal("-1.28"), Decimal("12345678901234567.89"), None], pa.decimal128(20, 2))
    assert bounds(wide, parse_type("DECIMAL(20, 2)")) == (wide[0].as_py(), wide[1].as_py(), 1)
    assert bounds(pa.array([True, False]), parse_type("BOOLEAN")) == (False, True, 0)
    days = pa.array([date(1969, 12, 31), date(2024, 1, 1)])
    assert bounds(days, parse_type("DATE")) == (date(1969, 12, 31), date(2024, 1, 1), 0)


GOLDEN = [
    "all_parquet", "longkey_false", "simple", "st_counts_true", "st_first1", "st_full_false", "st_full_true",
    "st_none_false", "st_none_true", "st_truncate_16__false", "st_truncate_16__true", "st_truncate_2__false",
    "st_truncate_2__true", "thin",
]  # fmt: skip


def has_javas_bounds(data_type: DataType) -> bool:
    """Return whether the type has bounds in Java 2.1, which has bounds of binaries, and none of TIMESTAMP(7..9)."""
    if not isinstance(data_type, AtomicType):
        return True
    return data_type.root not in BINARY_ROOTS and not (data_type.root in TIMESTAMP_ROOTS and data_type.precision == 9)


@pytest.mark.parametrize("name", GOLDEN)
def test_statistics_of_javas_data_files_are_byte_for_byte_those_in_javas_manifests(
    name: str, golden: Callable[..., GoldenTable]
) -> None:
    table = golden(name)
    schemas = sorted((table.path / "schema").glob("schema-*"))
    assert len(schemas) == 1
    schema = json.loads(schemas[0].read_text())
    options = schema["options"]
    fields = [DataField(field["id"], field["name"], parse_type(field["type"])) for field in schema["fields"]]
    fields = [field for field in fields if has_javas_bounds(field.type)]
    keys = [key for key in schema["primaryKeys"] if key not in schema["partitionKeys"]]
    thin = options.get("data-file.thin-mode") == "true"
    own: dict[str, dict[str, str]] = {}
    for key, value in options.items():
        if key.startswith("fields."):
            column, option = key.removeprefix("fields.").rsplit(".", 1)
            own.setdefault(column, {})[option] = value
    modes = column_modes(
        [field.name for field in fields],
        options.get("metadata.stats-mode", "truncate(16)"),
        own,
        int(options.get("metadata.stats-keep-first-n-columns", -1)),
        thin_keys=keys if thin else (),
    )
    dense = options.get("metadata.stats-dense-store", "true") == "true"
    checked = 0
    for file, data in _data_files(table, [field.name for field in fields]):
        collector = StatsCollector(fields, modes, dense)
        collector.update(data)
        stats, columns = collector.finish()
        covered = file.value_stats_cols
        assert stats.min_values == _with_our_bounds(file.value_stats.min_values, covered, schema)
        assert stats.max_values == _with_our_bounds(file.value_stats.max_values, covered, schema)
        if len(fields) == len(schema["fields"]):
            assert (stats.null_counts, columns) == (file.value_stats.null_counts, covered)
        key_fields = [field for key in keys for field in fields if field.name == key]
        for_keys = StatsCollector.for_keys(key_fields)
        for_keys.update(data)
        key_stats, _ = for_keys.finish()
        assert key_stats == file.key_stats
        checked += 1
    assert checked


def _data_files(table: GoldenTable, columns: list[str]) -> list[tuple[DataFileMeta, pa.Table]]:
    """Yield the metadata of the data files that exist, with the files' rows."""
    found: dict[str, tuple[DataFileMeta, pa.Table]] = {}
    paths = {path.name: path for path in table.path.rglob("data-*.parquet")}
    for entry in java_entries(table.path):
        path = paths.get(entry.file.file_name)
        if path is not None:
            found[path.name] = (entry.file, pq.ParquetFile(path).read(columns))
    return list(found.values())


def _with_our_bounds(row: bytes, columns: tuple[str, ...] | None, schema: dict[str, Any]) -> bytes:
    """Return Java's statistics row without the columns whose bounds differ here."""
    fields = {field["name"]: parse_type(field["type"]) for field in schema["fields"]}
    types = [fields[name] for name in (fields if columns is None else columns)]
    kept = [
        (value, data_type)
        for value, data_type in zip(decode_row(row, types), types, strict=True)
        if has_javas_bounds(data_type)
    ]
    if len(kept) == len(types):
        return row
    return encode_row([value for value, _ in kept], [data_type for _, data_type in kept])
