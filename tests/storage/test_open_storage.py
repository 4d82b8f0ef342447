"""The storage of a location."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.storage import FileIO, LocalFileIO, open_storage
from lakelsm.storage.object_store import ObjectFileIO


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("FILE:///a/b", "/a/b"),
        ("file:///a%20b/c d", "/a%20b/c d"),
        ("/a//b/../c", "/a/c"),
        ("/a:b/c#d?e", "/a:b/c#d?e"),
        ("file:///a#d?e", "/a#d?e"),
        ("//a", "/a"),
        ("/", "/"),
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("s3a://bucket//a", "s3://bucket/a"),
        ("S3://bucket", "s3://bucket"),
        ("s3://bucket/a%20b/c?d#e", "s3://bucket/a%20b/c?d#e"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("abfss://c@account.dfs.core.windows.net/a", "abfss://c@account.dfs.core.windows.net/a"),
    ],
)
def test_a_local_uri_opens_as_an_absolute_path_and_an_object_uri_unchanged_without_a_request(
    uri: str, path: str
) -> None:
    file_io, root = open_storage(uri)
    assert root == path and isinstance(file_io, FileIO)
    assert isinstance(file_io, LocalFileIO if path.startswith("/") else ObjectFileIO)


def test_a_relative_path_is_resolved_when_it_is_opened_and_a_tilde_is_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.chdir(tmp_path)
    given = {"wh": f"{tmp_path}/wh", "./a//b/": f"{tmp_path}/a/b", "..": str(tmp_path.parent), ".": str(tmp_path)}
    given |= {"~": "/home/me", "~/wh": "/home/me/wh", "./~x": f"{tmp_path}/~x", "./s3:x": f"{tmp_path}/s3:x"}
    assert {path: open_storage(path)[1] for path in given} == given
    missing = tmp_path / "missing"
    missing.mkdir()
    monkeypatch.chdir(missing)
    missing.rmdir()
    with pytest.raises(InvalidInputError, match="the working directory does not exist any more"):
        open_storage("wh")


@pytest.mark.parametrize(
    "uri", ["hdfs://h:9000/x", "oss://b/x", "wasb://c@a/x", "http://h/x"]
)
def test_another_scheme_is_refused_by_name(uri: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=uri.split(":")[0]):
        open_storage(uri)


@pytest.mark.parametrize("uri", ["", "  ", "~nobody-at-all/x", "file:x", "file://host/x"])
def test_a_location_without_an_absolute_local_path_is_refused(uri: str) -> None:
    with pytest.raises(InvalidInputError):
        open_storage(uri)


@pytest.mark.parametrize(
    "uri",
    ["s3://", "s3:bucket/x", "s3:///x", "s3://user:secretword@bucket/x", "s3://b:9000/x", "abfss://account/x", "s3://b/../x"],
)
def test_a_uri_with_other_parts_than_bucket_and_path_is_refused_without_showing_secrets(uri: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        open_storage(uri)
    assert "secretword" not in str(raised.value)


def test_storage_options_of_a_local_path_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="storage_options are for object stores"):
        open_storage("/a", {"s3.endpoint": "x"})
