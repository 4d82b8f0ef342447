"""Processes that write and compact one table concurrently lose no rows.

Three processes work on a table for some time: two write, and the test's process compacts. All work without a JVM, or two
of them with a JVM each and one without, so that both engines work on the table. Every commit writes all shared keys and
one key that no other writer writes, with the writer's name and the commit's number as values. Some commits delete one of
the writer's own keys. The final rows therefore follow from the order of the snapshots.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelsm import Table
from lakelsm.format.index.hash_index import decode_hashes
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.row.bucket_hash import key_hashes
from lakelsm.format.snapshot import CommitKind
from lakelsm.snapshots.manifest_scan import read_delta_entries, read_index_entries, read_live_entries
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import AtomicType
from tests.engines import TableEngine, each_case
from tests.table_files import root_of

REPOSITORY = Path(__file__).parents[1]
SHARED = 30
#: Minimum commits of each writer, even if the time is too short for them.
MIN_COMMITS = 4
COLUMNS = "k INT NOT NULL, writer STRING, n INT"

Row = tuple[int, str, int]


def own_key(writer: int, n: int) -> int:
    """Return the key that only commit ``n`` of a writer inserts."""
    return 1000 + 2 * n + writer


def changes(writer: int, n: int) -> list[tuple[int, str, int, str]]:
    """Return the rows of commit ``n`` of a writer, with their kinds: every fifth commit deletes the previous key."""
    rows = [(k, f"w{writer}", n, "+U") for k in range(SHARED)] + [(own_key(writer, n), f"w{writer}", n, "+I")]
    return rows + ([(own_key(writer, n - 1), f"w{writer}", n, "-D")] if n % 5 == 4 else [])


# -- code that runs in the processes -----------------------------------------------------------------------------------


def serve(scratch: str, engine: str) -> None:
    """Read commands as JSON lines from stdin and answer each with a JSON line."""
    works = _started(engine, Path(scratch))
    # Write once before the test, so that its time is spent on commits.
    table = works.create(Path(scratch), COLUMNS, ["k"])
    _write(works, str(root_of(table)), 0, 0, min_commits=1)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        print(json.dumps(_write(works, **json.loads(line))), flush=True)
    if works.spark is not None:
        works.spark.stop()


def _started(engine: str, scratch: Path) -> TableEngine:
    if engine == "local":
        return TableEngine(engine)
    from tests.spark_session import build_session

    session = build_session("worker", scratch, spark__master="local[1]", spark__driver__memory="512m")
    return TableEngine(engine, session)


def _write(engine: TableEngine, root: str, until: float, writer: int, min_commits: int = MIN_COMMITS) -> dict[str, Any]:
    table = engine.opened(root)
    done: list[tuple[int, int]] = []
    while time.time() < until or len(done) < min_commits:
        n = len(done)
        frame = engine.frame(changes(writer, n), "k INT, writer STRING, n INT, op STRING")
        result = table.write(frame, row_kind="op", commit_user=f"w{writer}", batch_id=n)
        assert result.snapshot_id is not None and not result.already_committed
        done.append((n, result.snapshot_id))
    return {"done": done}


def _compact(engine: TableEngine, table: Table, until: float) -> dict[str, int]:
    statuses: dict[str, int] = {}
    turn = 0
    while time.time() < until or not statuses.get("done"):
        result = engine.compact(table, full=turn % 2 == 0)
        statuses[result.status] = statuses.get(result.status, 0) + 1
        turn += 1
        if result.status == "nothing":
            if time.time() >= until:
                break  # The writers compacted everything themselves.
            time.sleep(0.3)
    return statuses


# -- code that runs in the test ----------------------------------------------------------------------------------------


class Worker:
    """A process that writes with one engine."""

    def __init__(self, scratch: Path, engine: str) -> None:
        scratch.mkdir()
        code = f"from tests.test_concurrency import serve; serve({str(scratch)!r}, {engine!r})"
        self._log = (scratch / "stderr").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def send(self, **command: object) -> None:
        """Send a command to the process; `answer` waits for the result."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Return the answer to the last command. If the process ended, fail with its stderr."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            pytest.fail(f"the process ended with {self._process.wait()}:\n{self._log.read()[-8000:]}")
        return json.loads(line)

    def close(self) -> None:
        """Stop the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()


#: The engines of the two writers, for each engine of the test.
WRITERS = {"local": ("local", "local"), "spark": ("local", "spark")}


@pytest.fixture(scope="module")
def _started_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], list[Worker]]]:
    """A function that returns the two processes for an engine, which all tests of that engine share."""
    started: dict[str, list[Worker]] = {}

    def of(engine: str) -> list[Worker]:
        if engine not in started:
            scratch = tmp_path_factory.mktemp(engine)
            started[engine] = [Worker(scratch / f"worker-{at}", name) for at, name in enumerate(WRITERS[engine])]
            for worker in started[engine]:
                assert worker.answer() == "ready"
        return started[engine]

    try:
        yield of
    finally:
        for worker in chain.from_iterable(started.values()):
            worker.close()


@pytest.fixture
def workers(engine: TableEngine, _started_workers: Callable[[str], list[Worker]]) -> list[Worker]:
    """Two processes, ready to write."""
    return _started_workers(engine.name)


@dataclass
class Outcome:
    """The reports of the processes: the commits of each writer as (n, snapshot id), and compactions by status."""

    commits: list[list[tuple[int, int]]]
    compactions: dict[str, int] = field(default_factory=dict)

    def expected(self) -> list[Row]:
        """Return the table's rows: commits applied in the order of their snapshots."""
        ordered = sorted(
            (snapshot, writer, n) for writer, done in enumerate(self.commits) for n, snapshot in done
        )
        rows: dict[int, Row] = {}
        for _, writer, n in ordered:
            for key, name, number, kind in changes(writer, n):
                if kind == "-D":
                    rows.pop(key, None)
                else:
                    rows[key] = (key, name, number)
        return sorted(rows.values())


def work_together(engine: TableEngine, workers: list[Worker], table: Table, seconds: float) -> Outcome:
    """Let two processes write the table for ``seconds`` while this process compacts it."""
    store = table._store()
    until = time.time() + seconds
    for writer in (0, 1):
        workers[writer].send(root=store.paths.root, until=until, writer=writer)
    compactions = _compact(engine, table, until)
    commits = [[(n, snapshot) for n, snapshot in worker.answer()["done"]] for worker in workers]
    outcome = Outcome(commits, compactions)
    counts = [len(done) for done in outcome.commits]
    print(f"{store.name}: {counts} commits, compactions {outcome.compactions}, {len(store.snapshots.ids())} snapshots")
    return outcome


def check_snapshots(store: TableStore, outcome: Outcome) -> None:
    """Each commit is in the history once. Its sequence numbers are above all earlier ones of the bucket."""
    snapshots = store.snapshots.list()
    appends = [snapshot for snapshot in snapshots if snapshot.commit_kind is CommitKind.APPEND]
    by_writer = [
        [(s.commit_identifier, s.id) for s in appends if s.commit_user == f"w{writer}"] for writer in (0, 1)
    ]
    assert by_writer == outcome.commits
    assert len(appends) == sum(map(len, outcome.commits))
    highest: dict[tuple[bytes, int], int] = {}
    for snapshot in appends:
        ours: dict[tuple[bytes, int], list[ManifestEntry]] = {}
        for entry in read_delta_entries(store.file_io, store.paths, snapshot):
            assert entry.kind == FileKind.ADD and entry.file.level == 0
            ours.setdefault((entry.partition, entry.bucket), []).append(entry)
        for bucket, entries in ours.items():
            low = min(entry.file.min_sequence_number for entry in entries)
            assert low > highest.get(bucket, -1), f"snapshot {snapshot.id} reuses sequence numbers of {bucket}"
            highest[bucket] = max(entry.file.max_sequence_number for entry in entries)


def check_levels(store: TableStore) -> None:
    """Live level-0 files of different commits share no sequence numbers. Files of higher levels never overlap."""
    latest = store.snapshots.latest()
    assert latest is not None
    spans: dict[tuple[bytes, int], list[tuple[int, int]]] = {}
    for entry in read_live_entries(store.file_io, store.paths, latest):
        file = entry.file
        if file.level == 0:
            spans.setdefault((entry.partition, entry.bucket), []).append(
                (file.min_sequence_number, file.max_sequence_number)
            )
    for bucket in spans.values():
        # Files of one commit start with the same number and have different keys.
        starts = {low for low, _ in bucket}
        ends = {low: max(high for start, high in bucket if start == low) for low in starts}
        assert all(ends[one] < other for one, other in pairwise(sorted(starts)))


def check_files(store: TableStore) -> None:
    """A snapshot names every data file in storage: files of lost races are deleted."""
    named = {
        entry.file.file_name
        for snapshot in store.snapshots.list()
        for entry in read_delta_entries(store.file_io, store.paths, snapshot)
    }
    stored = {path.name for path in Path(store.paths.root).glob("bucket-*/*")}
    assert stored == named


def check_buckets(store: TableStore) -> None:
    """With dynamic buckets, each key is in one bucket, and the HASH index has the keys of its bucket."""
    latest = store.snapshots.latest()
    assert latest is not None
    bucket_of: dict[int, int] = {}
    for entry in read_live_entries(store.file_io, store.paths, latest):
        path = store.data_path(entry.partition, entry.bucket, entry.file.file_name)
        for key in pq.read_table(path, columns=["k"], partitioning=None).column("k").to_pylist():
            assert bucket_of.setdefault(key, entry.bucket) == entry.bucket, f"key {key} is in two buckets"
    indexed = {
        entry.bucket: set(decode_hashes(store.file_io.read(store.paths.index(entry.file.file_name)), "").tolist())
        for entry in read_index_entries(store.file_io, store.paths, latest)
    }
    assert len(indexed) > 1
    for key, bucket in bucket_of.items():
        digest = key_hashes([pa.array([key], pa.int32())], [AtomicType("INT", nullable=False)])[0]
        assert int(digest) in indexed[bucket]


CASES: dict[str, dict[str, str]] = {
    "fixed buckets, a compactor of its own": {"bucket": "2"},
    "one bucket that everybody compacts": {"write-only": "false", "num-sorted-run.compaction-trigger": "3"},
    "dynamic buckets, competing assigners": {"bucket": "-1", "dynamic-bucket.target-row-num": "20"},
    "dynamic buckets that everybody compacts": {
        "bucket": "-1",
        "dynamic-bucket.target-row-num": "20",
        "write-only": "false",
        "num-sorted-run.compaction-trigger": "3",
    },
}


@each_case("case", CASES, on_spark=["dynamic buckets that everybody compacts"])
def test_two_processes_that_write_and_one_that_compacts_a_table_lose_no_rows(
    engine: TableEngine, tmp_path: Path, workers: list[Worker], case: str
) -> None:
    table = engine.create(tmp_path, COLUMNS, ["k"], options={**CASES[case], "commit.max-retries": "1000"})
    store = table._store()
    outcome = work_together(engine, workers, table, seconds=2 if engine.spark is None else 5)
    check_snapshots(store, outcome)
    check_levels(store)
    check_files(store)
    if CASES[case].get("bucket") == "-1":
        check_buckets(store)
    expected = outcome.expected()
    assert engine.rows(table) == expected
    compactions = [s.id for s in store.snapshots.list() if s.commit_kind is CommitKind.COMPACT]
    assert compactions, "no compaction was committed during the race"
    for number in compactions[-3:]:
        assert engine.rows(table.at(snapshot=number)) == engine.rows(table.at(snapshot=number - 1))
    engine.compact(table, full=True)
    assert engine.rows(table) == expected
