"""Names and places of files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lakelsm
from lakelsm.errors import CorruptTableError, InvalidInputError, UnsupportedFeatureError
from lakelsm.format.paths import (
    POSTPONE_BUCKET,
    CommitFileNames,
    TablePaths,
    check_name,
    check_names,
    is_bucket_name,
    is_partition_name,
    new_data_file_name,
    refuse_external_path,
    schema_id_of,
    snapshot_id_of,
    table_path,
    tag_of,
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
    assert (names.index_manifest(), names.index()) == ("index-manifest-u-0", "index-u-0")


def test_a_data_file_name_ends_in_its_format() -> None:
    assert new_data_file_name("data-", "u", 4, "parquet") == "data-u-4.parquet"


@pytest.mark.parametrize(
    ("name", "snapshot", "schema", "tag"),
    [
        ("snapshot-12", 12, None, None),
        ("schema-0", None, 0, None),
        ("tag-a-b", None, None, "a-b"),
        ("changelog-3", None, None, None),
        ("snapshot-2abc.tmp", None, None, None),
        (".snapshot-2.u.tmp", None, None, None),
        ("snapshot-", None, None, None),
        ("snapshot--1", None, None, None),
        ("snapshot-\u0661", None, None, None),
        ("snapshot-snapshot-1", None, None, None),
        ("12", None, None, None),
        ("LATEST", None, None, None),
    ],
)
def test_only_exact_names_have_an_id(name: str, snapshot: int | None, schema: int | None, tag: str | None) -> None:
    assert (snapshot_id_of(name), schema_id_of(name), tag_of(name)) == (snapshot, schema, tag)


@pytest.mark.parametrize("bucket", [0, 31, POSTPONE_BUCKET])
def test_directories_of_partitions_and_buckets_are_told_by_their_names(bucket: int) -> None:
    partition, name = PATHS.bucket_dir([("a=b", "x/y")], bucket).split("/")[-2:]
    assert is_bucket_name(name) and is_partition_name(partition, "a=b")
    assert not is_bucket_name(partition) and not is_partition_name(name, "a=b")
    assert not is_partition_name(partition, "a") and not is_bucket_name("index")


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


def test_a_table_is_named_as_a_catalog_calls_it_or_else_by_its_root() -> None:
    assert TablePaths("/wh/db.db/t/").name == TablePaths("/wh/db.db/t").root == "/wh/db.db/t"
    named = TablePaths("/wh/db.db/t", "db.t")
    assert named.name == "db.t" and named == TablePaths("/wh/db.db/t")


def test_no_message_names_a_table_by_its_root_where_it_has_a_name() -> None:
    package = Path(lakelsm.__file__).parent
    by_root = re.compile(r"\b[Tt]able \{[^}]*\broot\b")
    assert [str(path) for path in package.rglob("*.py") if by_root.search(path.read_text(encoding="utf-8"))] == []
