"""Partition values as text and their escaping, as Java's readers build directory names."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.manifest import decode_manifest
from lakelsm.format.partition_path import escape_path_name, partition_label, partition_text
from lakelsm.format.paths import TablePaths
from lakelsm.format.row.binary_row import encode_row
from lakelsm.format.row.binary_row_decode import decode_rows
from lakelsm.types import parse_type, to_arrow
from tests.format.manifest.manifest_samples import golden_files
from tests.nano_times import times_of_nanos

DEFAULT = "__DEFAULT_PARTITION__"


def test_names_are_escaped_as_paimon_does() -> None:
    assert escape_path_name("a/b=c d%") == "a%2Fb%3Dc d%25"
    assert escape_path_name("中文 é~") == "中文 é~"
    special = "".join(map(chr, range(32))) + "\"#%'*/:=?\\\x7f{}[]^"
    assert escape_path_name(special) == "".join(f"%{ord(char):02X}" for char in special)
    kept = "".join(chr(code) for code in range(32, 0x250) if chr(code) not in special)
    assert escape_path_name(kept) == kept


@pytest.mark.parametrize(
    ("sql", "value", "legacy", "modern"),
    [
        ("BOOLEAN", True, "true", "true"),
        ("TINYINT", -3, "-3", "-3"),
        ("BIGINT", 1 << 40, "1099511627776", "1099511627776"),
        ("STRING", "a/b", "a/b", "a/b"),
        ("CHAR(3)", "ab ", "ab ", "ab "),
        ("DECIMAL(10, 2)", Decimal("1.50"), "1.50", "1.50"),
        ("DECIMAL(38, 10)", Decimal("1E-10"), "0.0000000001", "0.0000000001"),
        ("FLOAT", 0.10000000149011612, "0.1", "0.1"),
        ("DOUBLE", 1.0, "1.0", "1.0"),
        ("DOUBLE", 1e7, "1.0E7", "1.0E7"),
        ("DOUBLE", 1.5e-4, "1.5E-4", "1.5E-4"),
        ("DOUBLE", -0.0, "-0.0", "-0.0"),
        ("DOUBLE", float("nan"), "NaN", "NaN"),
        ("DOUBLE", 5e-324, "4.9E-324", "4.9E-324"),
        ("FLOAT", 8.24e11, "8.2399999E11", "8.2399999E11"),
        ("DOUBLE", float("-inf"), "-Infinity", "-Infinity"),
        ("DATE", date(2024, 1, 1), "19723", "2024-01-01"),
        ("DATE", date(1969, 12, 31), "-1", "1969-12-31"),
        ("DATE", date(7, 1, 1), "-716971", "0007-01-01"),
        ("DATE", pa.scalar(2932897, pa.int32()).cast(pa.date32()), "2932897", "0000-01-01"),  # 10000-01-01
        ("TIME(0)", time(1, 2, 3), "3723000", "01:02:03"),
        ("TIME(3)", time(1, 2, 3, 40000), "3723040", "01:02:03.04"),
        ("TIME(3)", time(1, 2, 3), "3723000", "01:02:03.0"),
        ("TIME(2)", time(0, 39, 21, 7000), "2361007", "00:39:21.00"),
        (
            "TIMESTAMP(3)",
            datetime(2024, 1, 1, 0, 0, 0, 123000),
            "2024-01-01T00:00:00.123",
            "2024-01-01 00:00:00.123",
        ),
        ("TIMESTAMP(3)", datetime(2024, 1, 1), "2024-01-01T00:00", "2024-01-01 00:00:00.000"),
        ("TIMESTAMP(0)", datetime(2024, 1, 1, 1, 2, 3), "2024-01-01T01:02:03", "2024-01-01 01:02:03"),
        (
            "TIMESTAMP(6)",
            datetime(2024, 1, 1, 0, 0, 0, 1),
            "2024-01-01T00:00:00.000001",
            "2024-01-01 00:00:00.000001",
        ),
        (
            "TIMESTAMP(9)",
            times_of_nanos([1_704_067_200_000_000_007])[0],
            "2024-01-01T00:00:00.000000007",
            "2024-01-01 00:00:00.000000007",
        ),
        ("STRING", None, DEFAULT, DEFAULT),
        ("STRING", "", DEFAULT, DEFAULT),
        ("STRING", " \t\n", DEFAULT, DEFAULT),
        ("STRING", "\u00a0", "\u00a0", "\u00a0"),
        ("INT", None, DEFAULT, DEFAULT),
    ],
)
def test_partition_text_is_paimons(sql: str, value: object, legacy: str, modern: str) -> None:
    data_type = parse_type(sql)
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value, to_arrow(data_type))
    assert partition_text(scalar, data_type, legacy=True, default_name=DEFAULT) == legacy
    assert partition_text(scalar, data_type, legacy=False, default_name=DEFAULT) == modern


def test_a_partition_is_labelled_with_its_readable_values() -> None:
    values: dict[str, tuple[object, str]] = {
        "DATE": (date(2025, 12, 31), "2025-12-31"),
        "TIME(3)": (37_800_500, "10:30:00.5"),
        "TIMESTAMP(3)": (datetime(2025, 12, 31, 10), "2025-12-31T10:00"),
        "INT": (7, "7"),
        "STRING": ("a/b", "a/b"),
        "STRING NULL": (" ", " "),
        "BOOLEAN": (True, "true"),
        "DECIMAL(4, 2)": (Decimal("1.50"), "1.50"),
        "BINARY(2)": (b"ab", "ab"),
        "BIGINT": (None, "NULL"),
    }
    types = [parse_type(sql) for sql in values]
    row = encode_row([value for value, _ in values.values()], types)
    names = [f"c{at}" for at in range(len(types))]
    expected = "/".join(f"{name}={text}" for name, (_, text) in zip(names, values.values()))
    assert partition_label(row, names, types) == expected
    assert partition_label(encode_row([-719_529], [parse_type("INT")]), ["d"], [parse_type("DATE")]) == "d=-0001-12-31"
    assert partition_label(encode_row([], []), [], []) == ""


def test_years_of_more_than_four_digits_and_before_year_1_are_named_as_in_java() -> None:
    data_type = parse_type("TIMESTAMP(3)")
    far, before = (pa.scalar(millis, pa.timestamp("ms")) for millis in (253402300800000, -62198755200000))
    assert partition_text(far, data_type, legacy=True, default_name=DEFAULT) == "+10000-01-01T00:00"
    assert partition_text(before, data_type, legacy=True, default_name=DEFAULT) == "-0001-01-01T00:00"
    with pytest.raises(UnsupportedFeatureError, match=r"year -1 .*partition\.legacy-name' = 'true'"):
        partition_text(before, data_type, legacy=False, default_name=DEFAULT)


def test_a_local_timestamp_is_utc_in_legacy_names_and_local_otherwise() -> None:
    data_type = parse_type("TIMESTAMP_LTZ(3)")
    value = pa.scalar(datetime(2024, 1, 1, 0, 30, tzinfo=timezone.utc), to_arrow(data_type))
    zone = timezone(timedelta(hours=-2))
    assert partition_text(value, data_type, legacy=True, default_name=DEFAULT) == "2024-01-01T00:30"
    text = partition_text(value, data_type, legacy=False, default_name=DEFAULT, local_zone=zone)
    assert text == "2023-12-31 22:30:00.000"


@pytest.mark.parametrize("sql", ["ARRAY<INT>", "BYTES"])
def test_a_type_without_stable_text_is_refused_by_name(sql: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=sql.replace("<", ".")):
        partition_text(pa.scalar(b"x"), parse_type(sql), legacy=True, default_name=DEFAULT)


def test_bytes_are_text_in_modern_names() -> None:
    assert partition_text(pa.scalar(b"ab"), parse_type("BYTES"), legacy=False, default_name=DEFAULT) == "ab"
    cut = pa.scalar(b"\xed\xa0\x80\xe4\xb8\xed\xb8")
    assert partition_text(cut, parse_type("BYTES"), legacy=False, default_name=DEFAULT) == "\ufffd" * 3


def test_every_partitioned_golden_file_is_in_the_directory_of_its_partition(tmp_path: Path) -> None:
    types = [parse_type(text) for text in ("STRING", "INT", "DATE")]
    names = ("p", "q", "da")
    found = 0
    for name, path in golden_files(tmp_path, "part/manifest/manifest-*-0"):
        if "list" in path.name:
            continue
        table = TablePaths(str(path.parents[1]))
        for entry in decode_manifest(path.read_bytes(), name):
            values = [column[0] for column in decode_rows([entry.partition], types)]
            texts = [
                (column, partition_text(value, data_type, legacy=True, default_name=DEFAULT))
                for column, value, data_type in zip(names, values, types, strict=True)
            ]
            assert Path(table.data_file(texts, entry.bucket, entry.file.file_name)).exists()
            found += 1
    assert found >= 4


def text(value: Any, sql: str, legacy: bool) -> str:
    data_type = parse_type(sql)
    return partition_text(pa.scalar(value, to_arrow(data_type)), data_type, legacy, DEFAULT)


@given(st.dates())
def test_every_day_of_the_calendar_is_named_as_iso_does(day: date) -> None:
    assert text(day, "DATE", legacy=False) == day.isoformat()
    assert text(day, "DATE", legacy=True) == str((day - date(1970, 1, 1)).days)


@given(st.datetimes())
def test_every_time_of_the_calendar_is_named_by_its_parts(moment: datetime) -> None:
    assert text(moment, "TIMESTAMP(6)", legacy=False) == f"{moment.replace(microsecond=0)}.{moment.microsecond:06}"
    legacy = moment.isoformat(timespec="milliseconds" if moment.microsecond % 1000 == 0 else "microseconds")
    if not moment.microsecond:
        legacy = moment.isoformat(timespec="seconds" if moment.second else "minutes")
    assert text(moment, "TIMESTAMP(6)", legacy=True) == legacy


@given(st.text(), st.text())
def test_two_texts_have_two_names_and_neither_leads_elsewhere(one: str, other: str) -> None:
    names = escape_path_name(one), escape_path_name(other)
    assert (names[0] == names[1]) is (one == other)
    assert not set("".join(names)) & set("/\\:*?\0\n")


@pytest.mark.parametrize("far", [1 << 60, -(1 << 60)])
def test_a_local_time_outside_the_calendar_is_refused_with_the_remedy(far: int) -> None:
    value = pa.scalar(far, pa.int64()).cast(pa.timestamp("us", "UTC"))
    with pytest.raises(UnsupportedFeatureError, match=r"outside the years 1 to 9999 .*'partition.legacy-name' = 'true'"):
        partition_text(value, parse_type("TIMESTAMP_LTZ(6)"), legacy=False, default_name=DEFAULT)
