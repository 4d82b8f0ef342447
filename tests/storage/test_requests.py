"""The number of requests to an object store is as documented in docs/object-stores.md, for any size of the table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.storage.object_client import OBJECT_CACHE
from tests.storage.object_server import ObjectServer

PAGE = Path(__file__).parents[2] / "docs" / "object-stores.md"
#: The upkeep after a write may send this many more requests, if the table is not `write-only`.
MAX_AFTERWARDS = 12
#: The number of commits before the measurement, and the rows of each.
SIZES = {"small": (3, 10), "large": (20, 4000)}


def table(server: ObjectServer, commits: int, rows: int) -> tuple[Catalog, Table]:
    catalog = Catalog(f"{server.new_bucket()}/w", storage_options=server.options)
    options = {"bucket": "1", "write-only": "true"}
    made = catalog.create_table("d.t", "id BIGINT, v INT", primary_key=["id"], options=options)
    for number in range(commits):
        ids = range(number, number + rows)
        made.write(pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([number] * rows, pa.int32())}))
    made.compact(full=True)
    return catalog, made


def requests(server: ObjectServer, operation: Callable[[], object]) -> Counter[str]:
    """Return the requests of an operation by method and kind of file."""
    with server.counted():
        operation()
    return Counter(f"{method} {_kind(path)}" for method, path in server.requests)


def _kind(path: str) -> str:
    folder, _, name = path.rpartition("/")
    last = folder.rpartition("/")[2]
    if last == "manifest":
        return "manifest list" if name.startswith("manifest-list") else "manifest"
    return "data file" if last.startswith("bucket-") else last or "bucket"


def documented(operation: str) -> Counter[str]:
    """Return the documented requests of an operation, such as '2 GET schema, 3 GET snapshot', without manifests."""
    line = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| {operation} |"))
    found = re.findall(r"(\d+) ((?:GET|HEAD|PUT|LIST|DELETE|POST) [a-z ]+?)(?=,|;| \|)", line)
    return Counter({what.strip(): int(number) for number, what in found})


@pytest.mark.parametrize("size", SIZES)
def test_requests_are_as_documented_at_any_size(object_server: ObjectServer, size: str) -> None:
    catalog, made = table(object_server, *SIZES[size])
    upsert = pa.table({"id": pa.array([1], pa.int64()), "v": pa.array([-1], pa.int32())})

    def in_a_new_process(operation: Callable[[], object]) -> Counter[str]:
        OBJECT_CACHE.clear()
        sent = requests(object_server, operation)
        assert sent.pop("GET manifest", 0) <= 30
        return sent

    assert requests(object_server, lambda: catalog.table("d.t")) == documented("open")
    assert in_a_new_process(lambda: made.to_arrow(where="id = 2")) == documented("point read")
    assert requests(object_server, lambda: made.to_arrow(where="id = 2")) == documented("point read again")
    assert in_a_new_process(lambda: made.write(upsert)) == documented("upsert")
    sent = requests(object_server, lambda: made.write(upsert))
    assert sent == documented("upsert again")
    followed = requests(object_server, lambda: made.write(upsert, options={"write-only": "false"}))
    followed.pop("GET manifest", 0)
    assert followed.total() <= sent.total() + MAX_AFTERWARDS, followed - sent
    assert sent.total() - 2 - 3 - 1 == 11, "a commit: less the newest schema, the snapshot to start from, the data file"
    assert requests(object_server, lambda: made.compact(full=True)) == documented("compaction")
    made.write(upsert)
    assert in_a_new_process(lambda: made.compact(full=True)) == documented("compaction in a new process")
