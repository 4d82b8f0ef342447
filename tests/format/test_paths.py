"""Paths of a table's files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lakelsm
from lakelsm.errors import InvalidInputError
from lakelsm.format.file_names import (
    is_bucket_name,
    is_partition_name,
)
from lakelsm.format.paths import POSTPONE_BUCKET, TablePaths, table_path

PATHS = TablePaths("/wh/db.db/t/")


def test_files_have_paimons_paths() -> None:
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


def test_data_files_are_in_their_bucket() -> None:
    assert PATHS.bucket_dir([], 0) == "/wh/db.db/t/bucket-0"
    assert PATHS.bucket_dir([("p", "a/b"), ("q", "1")], 3) == "/wh/db.db/t/p=a%2Fb/q=1/bucket-3"
    assert PATHS.bucket_dir([], -2) == "/wh/db.db/t/bucket-postpone"
    assert PATHS.data_file([("p", "x")], 1, "data-u-0.orc") == "/wh/db.db/t/p=x/bucket-1/data-u-0.orc"


@pytest.mark.parametrize("name", ["", "  ", "a/b", "../../x", "a\0"])
def test_a_tag_stays_in_its_directory(name: str) -> None:
    with pytest.raises(InvalidInputError, match="Tag name"):
        PATHS.tag(name)


@pytest.mark.parametrize("bucket", [0, 31, POSTPONE_BUCKET])
def test_names_identify_directories_of_partitions_and_buckets(bucket: int) -> None:
    partition, name = PATHS.bucket_dir([("a=b", "x/y")], bucket).split("/")[-2:]
    assert is_bucket_name(name) and is_partition_name(partition, "a=b")
    assert not is_bucket_name(partition) and not is_partition_name(name, "a=b")
    assert not is_partition_name(partition, "a") and not is_bucket_name("index")


def test_a_partition_value_with_a_too_long_name_is_refused() -> None:
    paths = TablePaths("/wh/t")
    assert paths.partition_dir([("p", "x" * 253)]).endswith("x" * 253)
    with pytest.raises(InvalidInputError, match=r"Partition value p='(:){40}'\.\.\. has a directory name of 260 bytes"):
        paths.partition_dir([("p", ":" * 86)])


def test_a_table_has_the_name_of_its_catalog_or_else_its_root() -> None:
    assert TablePaths("/wh/db.db/t/").name == TablePaths("/wh/db.db/t").root == "/wh/db.db/t"
    named = TablePaths("/wh/db.db/t", "db.t")
    assert named.name == "db.t" and named == TablePaths("/wh/db.db/t")


def test_no_message_names_a_table_by_its_root_if_it_has_a_name() -> None:
    package = Path(lakelsm.__file__).parent
    by_root = re.compile(r"\b[Tt]able \{[^}]*\broot\b")
    assert [str(path) for path in package.rglob("*.py") if by_root.search(path.read_text(encoding="utf-8"))] == []
