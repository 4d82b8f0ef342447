"""All operations of a table in this process on an object store, and that they never write or show credentials."""

from __future__ import annotations

import logging
import pickle
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, LakelsmError, Table
from lakelsm.schema_changes import AddColumn
from lakelsm.storage import FileIO
from tests.storage.object_server import ObjectServer

SECRETS = (b"test-secret", b"test-access")


def rows(first: int, count: int, v: int = 0) -> pa.Table:
    ids = pa.array(range(first, first + count), pa.int64())
    return pa.table({"id": ids, "name": [f"n{each}" for each in ids.to_pylist()], "v": pa.array([v] * count, pa.int32())})


def created(server: ObjectServer, **options: str) -> Table:
    catalog = Catalog(f"{server.new_bucket()}/w", storage_options=server.options)
    columns = "id BIGINT, name STRING, v INT"
    return catalog.create_table("d.t", columns, primary_key=["id"], options={"bucket": "2", **options})


def contents(file_io: FileIO, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in file_io.entries(path):
        below = f"{path}/{entry.name}"
        if entry.is_directory:
            yield from contents(file_io, below)
        else:
            yield below, file_io.read(below)


@pytest.mark.parametrize(
    "options",
    [
        {"changelog-producer": "lookup"},
        {"deletion-vectors.enabled": "true"},
        {"bucket": "-1", "dynamic-bucket.target-row-num": "20"},
        {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
        {"file-index.bloom-filter.columns": "name", "file-index.in-manifest-threshold": "1 b"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_each_kind_of_table_is_written_read_changed_and_compacted(
    object_server: ObjectServer, options: dict[str, str]
) -> None:
    table = created(object_server, **options)
    table.write(rows(0, 30, v=1))
    table.write(rows(20, 30, v=2))
    if "merge-engine" not in options:
        table.delete("id = 3")
    table.compact(full=True)
    expected = {each: 1 if each < 20 else 2 for each in range(50) if each != 3}
    if "merge-engine" in options:
        expected = {each: (each < 30) + 2 * (each >= 20) for each in range(50)}
    found = table.to_arrow().to_pydict()
    assert dict(zip(found["id"], found["v"])) == expected
    assert table.to_arrow(where="name = 'n33'")["id"].to_pylist() == [33]
    assert table.count().rows == len(expected)
    with table.lookup() as lookup:
        assert lookup.get(33) is not None and lookup.get(99) is None


def test_changes_schemas_tags_branches_and_expiry_work(object_server: ObjectServer) -> None:
    table = created(object_server, **{"changelog-producer": "input"})
    table.write(rows(0, 3, v=1))
    table.tags.create("first")
    table.write(rows(1, 1, v=2))
    changes = table.changelog_reader(1, 2).read_all().to_pydict()
    assert changes["id"] == [1] and changes["v"] == [2]
    table.branches.create("b", tag="first")
    table.branches.open("b").write(rows(7, 1))
    assert sorted(table.branches.open("b").to_arrow()["id"].to_pylist()) == [0, 1, 2, 7]
    for number in range(4):
        table.write(rows(10 + number, 1))
    table.maintenance.expire_snapshots(retain_last=1, older_than=0)
    assert table.count().rows == 7 and table.at(tag="first").to_arrow().num_rows == 3
    table.rollback(to="first")
    assert table.count().rows == 3
    table.maintenance.remove_orphans(older_than="1 day")
    assert [str(finding) for finding in table.maintenance.check().findings] == []


def test_a_schema_changes(object_server: ObjectServer) -> None:
    bucket = object_server.new_bucket()
    catalog = Catalog(bucket, storage_options=object_server.options)
    table = catalog.create_table("d.t", "id BIGINT", primary_key=["id"], options={"bucket": "1"})
    table.write(pa.table({"id": pa.array([1], pa.int64())}))
    catalog.alter_table("d.t", AddColumn("w", "INT"))
    assert table.to_arrow().to_pydict() == {"id": [1], "w": [None]}
    assert Table.for_path(f"{bucket}/d.db/t", storage_options=object_server.options).schema.id == 1


def test_credentials_are_in_no_file_log_warning_error_or_repr(
    object_server: ObjectServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        table = created(object_server)
        table.write(rows(0, 30))
        table.compact(full=True)
        for cache in ("full", "partial"):
            with table.lookup(cache=cache, directory=str(tmp_path / cache)) as lookup:
                assert lookup.get(3) is not None
        answer = {"status": "403 Forbidden", "body": b"<Code>SignatureDoesNotMatch</Code>test-secret test-access"}
        with object_server.fault("refuse", lambda *_: True, times=99, **answer), pytest.raises(LakelsmError) as raised:
            table.write(rows(0, 1))
        texts += [str(raised.value), repr(raised.value), *traceback.format_exception(raised.value)]
        store = table._store()
        texts += [repr(table), repr(store), repr(store.file_io), str(warned), caplog.text, *capfd.readouterr()]
    bucket = store.paths.root.removesuffix("/w/d.db/t")
    found = dict(contents(store.file_io.within(bucket), bucket))
    found |= {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    found |= {f"text {number}": text.encode() for number, text in enumerate(texts)}
    assert len(found) > 10
    assert [path for path, data in found.items() if any(secret in data for secret in SECRETS)] == []
    assert SECRETS[0] in pickle.dumps(store.file_io), "tasks get them"
