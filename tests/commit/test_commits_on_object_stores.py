"""Commits with faults between this process and the store: no batch is lost, and none is committed twice."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import CommitOutcomeUnknownError, StorageError
from tests.chance import seeds
from tests.storage.object_server import ObjectServer

KINDS = [
    ("drop", {}),
    ("drop before", {}),
    ("land then fail", {"status": "500 Internal Server Error"}),
    ("land then fail", {"status": "503 Slow Down"}),
    ("refuse", {"times": 3}),
    ("refuse", {"status": "409 Conflict", "body": b"<Code>ConditionalRequestConflict</Code>"}),
    ("delay", {"seconds": 0.2}),
    ("truncate", {}),
]


def table(server: ObjectServer, **options: str) -> Table:
    catalog = Catalog(f"{server.new_bucket()}/w", storage_options=server.options)
    given = {"bucket": "1", "write-only": "true", **options}
    return catalog.create_table("d.t", "id BIGINT, v INT", primary_key=["id"], options=given)


def batch(*ids: int, v: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([v] * len(ids), pa.int32())})


SHORT_WAITS = pytest.mark.usefixtures("short_waits")


def is_snapshot(number: int, method: str, path: str) -> bool:
    return method == "PUT" and path.endswith(f"/snapshot/snapshot-{number}")


@SHORT_WAITS
@pytest.mark.parametrize(("kind", "more"), KINDS)
def test_a_snapshot_is_published_once_whatever_happens_to_the_answer(
    object_server: ObjectServer, kind: str, more: dict[str, object]
) -> None:
    made = table(object_server)
    made.write(batch(1))
    with object_server.fault(kind, lambda *sent: is_snapshot(2, *sent), **more) as fault:
        result = made.write(batch(2))
    assert fault.met and result.snapshot_id == 2
    assert sorted(made.to_arrow()["id"].to_pylist()) == [1, 2]
    made.write(batch(3))
    assert made.count().snapshot_id == 3


@SHORT_WAITS
@pytest.mark.parametrize(("kind", "more"), KINDS)
def test_a_schema_is_added_once_whatever_happens_to_the_answer(
    object_server: ObjectServer, kind: str, more: dict[str, object]
) -> None:
    def hits(method: str, path: str) -> bool:
        return method == "PUT" and path.endswith("/schema/schema-0")

    with object_server.fault(kind, hits, **more) as fault:
        made = table(object_server)
    assert fault.met and made.schema.id == 0


@SHORT_WAITS
def test_an_unknown_outcome_is_reported_and_a_rerun_finds_the_commit(object_server: ObjectServer) -> None:
    made = table(object_server)
    def reads(method: str, path: str) -> bool:
        return method == "GET" and path.endswith("/snapshot-1")

    with (
        object_server.fault("drop", lambda *sent: is_snapshot(1, *sent)),
        object_server.fault("refuse", reads, status="403 Forbidden", body=b"", times=9),
        pytest.raises(CommitOutcomeUnknownError, match="batch id"),
    ):
        made.write(batch(1), commit_user="u", batch_id=1)
    made.write(batch(1), commit_user="u", batch_id=1)
    assert made.count().rows == 1


def test_a_refused_commit_leaves_no_file(object_server: ObjectServer) -> None:
    made = table(object_server)
    made.write(batch(1))
    store = made._opened
    before = sorted(_files(store.file_io, store.paths.root))
    with (
        object_server.fault("refuse", lambda *sent: is_snapshot(2, *sent), status="403 Forbidden", body=b"", times=9),
        pytest.raises(StorageError, match=r"snapshot-2: the store denies access .403."),
    ):
        made.write(batch(2))
    assert sorted(_files(store.file_io, store.paths.root)) == before


@SHORT_WAITS
@pytest.mark.property
@pytest.mark.parametrize("seed", seeds(1))
def test_random_faults_lose_and_double_nothing(object_server: ObjectServer, seed: int) -> None:
    chance = random.Random(seed)
    made = table(object_server)
    expected: dict[int, int] = {}
    for number in range(12):
        kind, more = chance.choice(KINDS)
        after = chance.randrange(20)

        def hits(method: str, path: str, left: list[int] = [after]) -> bool:  # noqa: B006  It counts down.
            left[0] -= 1
            return left[0] < 0

        with object_server.fault(kind, hits, **more):
            try:
                made.write(batch(number, number // 2, v=number), commit_user="u", batch_id=number)
            except (CommitOutcomeUnknownError, StorageError):
                made.write(batch(number, number // 2, v=number), commit_user="u", batch_id=number)
        expected |= {number: number, number // 2: number}
        rows = made.to_arrow().to_pydict()
        assert len(rows["id"]) == len(expected)
        assert dict(zip(rows["id"], rows["v"])) == expected


def test_racing_writers_lose_no_batch(object_server: ObjectServer) -> None:
    made = table(object_server, **{"commit.max-retries": "1000"})
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: made.write(batch(number)), range(12)))
    assert sorted(made.to_arrow()["id"].to_pylist()) == list(range(12))


def _files(file_io: object, path: str) -> list[str]:
    found: list[str] = []
    for entry in file_io.entries(path):  # type: ignore[attr-defined]
        below = f"{path}/{entry.name}"
        found += _files(file_io, below) if entry.is_directory else [below]
    return found
