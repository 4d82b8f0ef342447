"""Names and places of files; text of partition values."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.errors import CorruptTableError, InvalidInputError, UnsupportedFeatureError
from lakelsm.format.manifest import decode_manifest
from lakelsm.format.paths import (
    CommitFileNames,
    TablePaths,
    check_name,
    check_names,
    escape_path_name,
    file_format_of,
    new_data_file_name,
    parse_snapshot_id,
    partition_label,
    partition_text,
    refuse_external_path,
    table_path,
    temp_name,
    unescape_path_name,
)
from lakelsm.format.row.binary_row import encode_row
from lakelsm.format.row.binary_row_decode import decode_rows
from lakelsm.types import parse_type, to_arrow
from tests.format.manifest.manifest_samples import golden_files
from tests.nano_times import times_of_nanos

PATHS = TablePaths("/wh/db.db/t/")
DEFAULT = "__DEFAULT_PARTITION__"


def test_files_lie_where_paimon_puts_them() -> None:
    assert table_path("/wh/", "db", "t") == PATHS.root == "/wh/db.db/t"
    assert PATHS.schema_file(0) == "/wh/db.db/t/schema/schema-0"
    assert PATHS.snapshot_file(12) == "/wh/db.db/t/snapshot/snapshot-12"
    assert (PATHS.latest_hint, PATHS.earliest_hint) == (
        "/wh/db.db/t/snapshot/LATEST",
        "/wh/db.db/t/snapshot/EARLIEST",
    )
    assert PATHS.manifest("manifest-u-0") == "/wh/db.db/t/manifest/manifest-u-0"
    assert PATHS.index("index-u-0") == "/wh/db.db/t/index/index-u-0"
    assert PATHS.statistics("stat-u-0") == "/wh/db.db/t/statistics/stat-u-0"
    assert PATHS.tag("v1") == "/wh/db.db/t/tag/tag-v1"
    assert PATHS.changelog(3) == "/wh/db.db/t/changelog/changelog-3"


def test_data_files_lie_in_their_bucket() -> None:
    assert PATHS.bucket_dir([], 0) == "/wh/db.db/t/bucket-0"
    assert PATHS.bucket_dir([("p", "a/b"), ("q", "1")], 3) == "/wh/db.db/t/p=a%2Fb/q=1/bucket-3"
    assert PATHS.bucket_dir([], -2) == "/wh/db.db/t/bucket-postpone"
    assert PATHS.data_file([("p", "x")], 1, "data-u-0.orc") == "/wh/db.db/t/p=x/bucket-1/data-u-0.orc"


@pytest.mark.parametrize("name", ["", "  ", "a/b", "../../x", "a\0"])
def test_a_tag_stays_in_its_directory(name: str) -> None:
    with pytest.raises(InvalidInputError, match="Tag name"):
        PATHS.tag(name)


def test_names_of_one_commit_share_a_uuid_and_count_by_kind() -> None:
    names = CommitFileNames("u")
    assert [names.manifest_list(), names.manifest_list(), names.manifest()] == [
        "manifest-list-u-0",
        "manifest-list-u-1",
        "manifest-u-0",
    ]
    assert (names.index_manifest(), names.index(), names.statistics()) == (
        "index-manifest-u-0",
        "index-u-0",
        "stat-u-0",
    )


def test_a_data_file_name_ends_in_its_format() -> None:
    assert new_data_file_name("data-", "u", 4, "parquet") == "data-u-4.parquet"
    assert file_format_of("data-u-4.zstd.parquet") == "parquet"
    assert file_format_of("data-u-4.ORC") == "orc"
    assert file_format_of("data") == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("snapshot-12", 12),
        ("schema-0", 0),
        ("changelog-3", 3),
        ("snapshot-2abc.tmp", None),
        (".snapshot-2.u.tmp", None),
        ("snapshot-", None),
        ("snapshot--1", None),
        ("snapshot-\u0661", None),
        ("LATEST", None),
    ],
)
def test_only_exact_names_have_an_id(name: str, expected: int | None) -> None:
    assert parse_snapshot_id(name) == expected


def test_temporary_names_begin_with_a_dot() -> None:
    assert temp_name("snapshot-3", "u") == ".snapshot-3.u.tmp"


def test_names_are_escaped_as_paimon_does() -> None:
    assert escape_path_name("a/b=c d%") == "a%2Fb%3Dc d%25"
    assert escape_path_name("中文 é~") == "中文 é~"
    special = "".join(map(chr, range(32))) + "\"#%'*/:=?\\\x7f{}[]^"
    assert escape_path_name(special) == "".join(f"%{ord(char):02X}" for char in special)
    kept = "".join(chr(code) for code in range(32, 0x250) if chr(code) not in special)
    assert escape_path_name(kept) == kept
    assert unescape_path_name(escape_path_name(special + kept)) == special + kept
    assert unescape_path_name("100%") == "100%"


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


def test_a_partition_is_labelled_with_its_values_as_people_read_them() -> None:
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


def test_years_of_more_than_four_digits_and_before_christ_are_named_as_java_names_them() -> None:
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


def test_every_partitioned_golden_file_lies_where_its_partition_says(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/passwd", "../../x", "a\0b", 5, None])
def test_a_name_that_could_lead_out_of_its_directory_is_refused_with_the_file_that_gives_it(name: object) -> None:
    with pytest.raises(CorruptTableError, match=r"/t/manifest/m has .* as _FILE_NAME, which is no name of a file"):
        check_name(name, "_FILE_NAME", "/t/manifest/m")
    if isinstance(name, str):
        with pytest.raises(CorruptTableError, match=re.escape(repr(name))):
            check_names(["data-1.parquet", name, "data-2.parquet"], "_FILE_NAME", "/t/manifest/m")


@pytest.mark.parametrize("name", ["data-1.parquet", "..x", "...", "a b", "ü", "%2F", "~"])
def test_any_other_name_is_a_name(name: str) -> None:
    assert check_name(name, "_FILE_NAME", "m") == name
    check_names([name, name], "_FILE_NAME", "m")


def test_a_file_at_an_external_path_is_refused_by_name() -> None:
    refuse_external_path(None, "data-1.parquet")
    with pytest.raises(UnsupportedFeatureError, match=r"data-1.parquet .* file:/x .*data-file.external-paths"):
        refuse_external_path("file:/x", "data-1.parquet")


def test_a_partition_value_that_makes_too_long_a_name_is_named() -> None:
    paths = TablePaths("/wh/t")
    assert paths.partition_dir([("p", "x" * 253)]).endswith("x" * 253)
    with pytest.raises(InvalidInputError, match=r"Partition value p='(:){40}'\.\.\. makes a directory name of 260 bytes"):
        paths.partition_dir([("p", ":" * 86)])
