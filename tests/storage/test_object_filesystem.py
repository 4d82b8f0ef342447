"""The Arrow file system on objects, on an S3 server on loopback."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs as arrow_fs

from lakelsm.arguments import option_texts
from lakelsm.errors import StorageError
from lakelsm.storage import FileIO, open_storage
from lakelsm.storage.object_client import OBJECT_CACHE
from tests.storage.object_server import ObjectServer


def opened(server: ObjectServer) -> tuple[FileIO, str]:
    return open_storage(server.new_bucket(), option_texts("options", server.options))


def test_a_file_is_written_in_parts_and_read_in_ranges(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    data = Random(1).randbytes(20 << 20)
    filesystem = file_io.filesystem()
    with object_server.counted() as counts, filesystem.open_output_stream(f"{root}/big", buffer_size=1 << 16) as sink:
        for start in range(0, len(data), 100_000):
            sink.write(data[start : start + 100_000])
        assert sink.tell() == len(data)
    assert counts["POST"] == 2 and 2 <= counts["PUT"] <= 4
    with filesystem.open_input_file(f"{root}/big") as source:
        assert source.size() == len(data) and source.read_at(1 << 21, len(data) - (1 << 21)) == data[-(1 << 21) :]
    OBJECT_CACHE.clear()
    with filesystem.open_input_file(f"{root}/big") as source:
        assert source.size() == len(data)
        for start, size in [(0, 10), (len(data) - 5, 5), ((1 << 20) - 3, 6), ((19 << 20) - 7, 100), (5, 3 << 20)]:
            assert source.read_at(size, start) == data[start : start + size]
        source.seek(0)
        assert source.read() == data


def test_an_empty_file_reads_as_empty(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    file_io.write(f"{root}/empty", b"")
    assert file_io.read(f"{root}/empty") == b""
    with file_io.filesystem().open_input_file(f"{root}/empty") as source:
        assert source.size() == 0 and source.read() == b""


def test_a_small_file_is_read_whole_by_one_request(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    table = pa.table({"a": list(range(10_000)), "b": ["x"] * 10_000})
    pq.write_table(table, f"{root}/t", filesystem=file_io.filesystem())
    OBJECT_CACHE.clear()
    with object_server.counted() as counts, file_io.filesystem().open_input_file(f"{root}/t") as source:
        assert pq.read_table(source).equals(table)
    assert counts == {"GET": 1}


def test_objects_are_reported_and_deleted(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    filesystem = file_io.filesystem()
    file_io.write(f"{root}/a", b"12")
    filesystem.create_dir(f"{root}/d", recursive=True)
    assert filesystem.get_file_info(f"{root}/a").size == 2
    filesystem.delete_file(f"{root}/a")
    assert filesystem.get_file_info(f"{root}/a").type == arrow_fs.FileType.NotFound
    assert filesystem == file_io.filesystem()
    with pytest.raises(FileNotFoundError):
        filesystem.open_input_file(f"{root}/a")


def test_a_refused_write_raises_an_error_with_the_uri(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    answer: dict[str, Any] = {"status": "403 Forbidden", "body": b"<Error><Code>AccessDenied</Code></Error>"}
    with object_server.fault("refuse", lambda method, _: method in ("PUT", "POST"), times=100, **answer):
        sink = file_io.filesystem().open_output_stream(f"{root}/a")
        sink.write(b"1")
        with pytest.raises(StorageError, match=f"{root}/a: the store denies access .403 AccessDenied."):
            sink.close()


@pytest.mark.parametrize("streams", [3, 40])
def test_columns_that_are_read_side_by_side_are_requested_about_once(object_server: ObjectServer, streams: int) -> None:
    file_io, root = opened(object_server)
    size, step = 30 << 20, 1 << 16
    data = Random(1).randbytes(size)
    file_io.write(f"{root}/a", data)
    each = size // streams
    with object_server.counted() as counts, file_io.filesystem().open_input_file(f"{root}/a") as source:
        for at in range(0, each - step, step):
            for stream in range(streams):
                start = stream * each + at
                assert source.read_at(step, start) == data[start : start + step]
    assert counts["GET"] <= 1 + 30 * (1 if streams == 3 else 8)
