"""Names and places of files."""

from __future__ import annotations

import re

import pytest

from lakelsm.errors import CorruptTableError, InvalidInputError, UnsupportedFeatureError
from lakelsm.format.paths import (
    CommitFileNames,
    TablePaths,
    check_name,
    check_names,
    file_format_of,
    new_data_file_name,
    parse_snapshot_id,
    refuse_external_path,
    table_path,
    temp_name,
)

PATHS = TablePaths("/wh/db.db/t/")


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
