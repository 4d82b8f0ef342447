"""ObjectFileIO, on an S3 server on loopback."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError, StorageError, UnsupportedFeatureError
from tests.storage.object_server import ObjectServer, opened


def test_objects_of_any_name_are_read_as_they_were_written(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    for name in ["a", "dt=2024-01-01 10%3A00/b", "é ü/ñ", "#?&+{x}[y]~^|", 'a\\b"c`<>*$:;,@!\'()', ".dot"]:
        file_io.write(f"{root}/{name}", name.encode())
        assert file_io.read(f"{root}/{name}") == name.encode()
        assert file_io.size(f"{root}/{name}") == len(name.encode())
        assert file_io.exists(f"{root}/{name}")
        parent, _, last = f"{root}/{name}".rpartition("/")
        assert last in file_io.list(parent)


def test_every_operation_accepts_or_reports_a_missing_object(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    for operation in (file_io.read, file_io.size):
        with pytest.raises(FileNotFoundError, match=r"s3://.*/none"):
            operation(f"{root}/none")
    assert not file_io.exists(f"{root}/none")
    assert file_io.list(f"{root}/none") == []
    file_io.delete(f"{root}/none")
    file_io.delete_dir(f"{root}/none")
    file_io.delete_files([f"{root}/none", f"{root}/nor this"])


def test_entries_are_files_with_size_and_time_and_common_prefixes(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    file_io.write(f"{root}/t/a", b"12")
    file_io.write(f"{root}/t/d/b", b"1")
    file_io.write(f"{root}/tt/c", b"1")
    found = {entry.name: entry for entry in file_io.entries(f"{root}/t")}
    assert set(found) == {"a", "d"}
    assert found["d"].is_directory and not found["a"].is_directory
    assert found["a"].size == 2 and found["a"].modified > 1_600_000_000_000
    assert sorted(file_io.list(root)) == ["t", "tt"]


def test_a_directory_is_deleted_with_everything_below_it_and_nothing_else(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    for name in ["t/a", "t/d/b", "t2/c"]:
        file_io.write(f"{root}/{name}", b"1")
    file_io.delete_dir(f"{root}/t")
    assert file_io.list(root) == ["t2"]


def test_of_racing_creators_exactly_one_wins(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            path = f"{root}/snapshot-{number}"
            won = list(pool.map(file_io.create_if_absent, [path] * 8, [str(who).encode() for who in range(8)]))
            assert sum(won) == 1
            assert file_io.read(path) == str(won.index(True)).encode()


def test_a_store_that_ignores_the_condition_is_refused_and_nothing_is_left(object_server: ObjectServer) -> None:
    with object_server.fault("ignore condition", lambda method, _: method == "PUT", times=100):
        catalog = Catalog(f"{object_server.new_bucket()}/w", storage_options=object_server.options)
        with pytest.raises(UnsupportedFeatureError, match=r"If-None-Match.*nothing was written.*conditional writes"):
            catalog.create_table("d.t", "id INT", primary_key=["id"])
    assert catalog.list_databases() == []


def test_a_store_that_does_not_know_the_condition_is_refused(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    answer = {"status": "400 Bad Request", "body": b"<Code>NotImplemented</Code>"}
    faulty = object_server.fault("refuse", lambda method, _: method == "PUT", times=100, **answer)
    with faulty, pytest.raises(UnsupportedFeatureError, match="If-None-Match"):
        file_io.create_if_absent(f"{root}/a", b"")


def test_a_table_is_created_written_read_compacted_and_dropped(object_server: ObjectServer) -> None:
    bucket = object_server.new_bucket()
    catalog = Catalog(f"{bucket}/w", storage_options=object_server.options)
    schema = pa.schema([("dt", pa.string()), ("id", pa.int64()), ("v", pa.string())])
    table = catalog.create_table("d.t", schema, primary_key=["dt", "id"], partition_by=["dt"], options={"bucket": "2"})
    for first in range(0, 60, 20):
        ids = list(range(first, first + 40))
        table.write(pa.table({"dt": ["a b:c", "é"] * 20, "id": ids, "v": [f"{first} {each}" for each in ids]}))
    expected = {id: f"{min(id // 20 * 20, 40)} {id}" for id in range(80 + 20)}
    read = table.to_arrow().to_pydict()
    assert dict(zip(read["id"], read["v"])) == {id: expected[id] for id in range(80)}
    table.compact(full=True)
    table.delete("id < 10")
    assert catalog.table("d.t").count().rows == 70
    assert table.to_arrow(where="id = 33").to_pydict()["v"] == ["20 33"]
    assert catalog.list_tables() == ["d.t"]
    with pytest.raises(UnsupportedFeatureError, match="cannot rename a directory"):
        catalog.rename_table("d.t", "e.t")
    with pytest.raises(UnsupportedFeatureError, match="no empty directories"):
        catalog.create_database("e", if_not_exists=True)
    catalog.create_database("d", if_not_exists=True)
    with pytest.raises(InvalidInputError, match="is not empty"):
        catalog.drop_database("d")
    catalog.drop_database("d", cascade=True)
    assert catalog.list_databases() == []


def test_an_interrupted_drop_leaves_a_table_that_can_be_dropped_again(object_server: ObjectServer) -> None:
    catalog = Catalog(object_server.new_bucket(), storage_options=object_server.options)
    table = catalog.create_table("d.t", "id BIGINT", primary_key=["id"])
    table.write(pa.table({"id": pa.array([1], pa.int64())}))
    answer = {"status": "403 Forbidden", "body": b""}
    refusals = iter([False])

    def hits(method: str, _: str) -> bool:
        return method == "POST" and next(refusals, True)

    with object_server.fault("refuse", hits, **answer), pytest.raises(StorageError):
        catalog.drop_table("d.t")
    assert catalog.list_tables("d") == ["d.t"]
    assert catalog.table("d.t").to_arrow().num_rows == 0
    catalog.drop_table("d.t")
    assert catalog.list_databases() == []
