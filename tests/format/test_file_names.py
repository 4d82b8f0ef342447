"""File names are those of Paimon, are distinguished from other names, and never lead to another directory."""

from __future__ import annotations

import re

import pytest

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.file_names import (
    CommitFileNames,
    check_name,
    check_names,
    new_data_file_name,
    other_format,
    refuse_external_path,
    schema_id_of,
    snapshot_id_of,
    tag_of,
)
from lakelsm.format.paths import TablePaths

PATHS = TablePaths("/wh/db.db/t/")


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
    ("name", "found"),
    [
        ("data-u-0.parquet", None),
        ("data-u-0.zstd.parquet", None),
        ("data-u-0.PARQUET", None),
        ("data-u-0.orc", "orc"),
        ("data-u-0.ORC", "orc"),
        ("changelog-u-0.avro", "avro"),
        ("data-u-0.zlib.orc", "orc"),
        ("data-u-0.csv.gz", "csv"),
        ("data-u-0.json.zst", "json"),
        ("data-u-0.vector.lance", "lance"),
        ("data-u-0.blob", "blob"),
        ("data-u-0.orc.parquet", None),
        ("data-u-0.parquet.gz", None),
        ("data-u-0.xyz", None),
        ("data-u-0.gz", None),
        ("orc", None),
        ("data-u-0", None),
        ("", None),
    ],
)
def test_a_name_determines_another_format_of_a_file(name: str, found: str | None) -> None:
    assert other_format(name) == found


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


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/passwd", "../../x", "a\0b", 5, None])
def test_a_name_that_could_lead_out_of_its_directory_is_refused_with_the_file_that_gives_it(name: object) -> None:
    with pytest.raises(CorruptTableError, match=r"/t/manifest/m is damaged: _FILE_NAME is .*, not a plain file name"):
        check_name(name, "_FILE_NAME", "/t/manifest/m")
    if isinstance(name, str):
        with pytest.raises(CorruptTableError, match=re.escape(repr(name))):
            check_names(["data-1.parquet", name, "data-2.parquet"], "_FILE_NAME", "/t/manifest/m")


@pytest.mark.parametrize("name", ["data-1.parquet", "..x", "...", "a b", "ü", "%2F", "~"])
def test_any_other_name_is_accepted(name: str) -> None:
    assert check_name(name, "_FILE_NAME", "m") == name
    check_names([name, name], "_FILE_NAME", "m")


def test_a_file_at_an_external_path_is_refused_by_name() -> None:
    refuse_external_path(None, "data-1.parquet")
    with pytest.raises(UnsupportedFeatureError, match=r"data-1.parquet is at file:/x.*data-file.external-paths"):
        refuse_external_path("file:/x", "data-1.parquet")
