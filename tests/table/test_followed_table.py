"""`Table.follow` against a model: the changes of random histories give the table, with any limits and restarts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm import Table
from lakelsm.errors import (
    InvalidInputError,
    LakelsmError,
    SnapshotNotFoundError,
    StreamOffsetError,
    UnsupportedFeatureError,
)
from tests.engines import plain_rows
from tests.examples import examples
from tests.golden_tables import GoldenTable
from tests.stream.stream_reader import put, table_of, table_rows

KEYS = st.integers(0, 7)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(KEYS, min_size=1, max_size=6, unique=True), st.sampled_from("abc")),
        st.tuples(st.just("delete"), st.lists(KEYS, min_size=1, max_size=3, unique=True)),
        st.tuples(st.just("overwrite"), st.lists(KEYS, max_size=4, unique=True)),
        st.tuples(st.sampled_from(["compact", "expire", "rollback", "stop"])),
        st.tuples(st.just("read"), st.integers(1, 4), st.booleans()),
    ),
    max_size=14,
)

pytestmark = pytest.mark.filterwarnings("ignore:Table db.t. no changelog contains snapshot")


class Follower:
    """Follows a table with a consumer: applies batches to a dict, and marks only some of them as done."""

    def __init__(self, table: Table, limits: dict[str, Any], by_offset: bool, overwrites: bool) -> None:
        self.table, self.limits, self.by_offset, self.overwrites = table, limits, by_offset, overwrites
        self.begin()

    def begin(self) -> None:
        """Start without any progress."""
        for each in self.table.consumers.list():
            self.table.consumers.delete(each.name)
        self.state: dict[int, str] = {}
        self.offset: Any = None
        self.stop()

    def stop(self) -> None:
        """Continue later from the consumer or from the last done offset; the state is that of an idempotent sink."""
        start = self.offset if self.by_offset and self.offset is not None else "latest-full"
        self.batches = self.table.follow(
            json.loads(json.dumps(start)), consumer_id="c", timeout=0, overwrites=self.overwrites, **self.limits
        )

    def read(self, most: int, done: bool = True) -> None:
        for _, batch in zip(range(most), self.batches):
            for kind, key, value in plain_rows(batch.rows):
                if kind in ("+I", "+U"):
                    self.state[key] = value
                elif kind == "-D":
                    self.state.pop(key, None)
            if done:
                batch.done()
                self.offset = batch.offset

    def try_read(self, most: int, done: bool = True) -> None:
        try:
            self.read(most, done)
        except StreamOffsetError:  # A rollback: the reader starts again.
            self.begin()
            self.read(most, done)

    def finish(self) -> None:
        """Read everything: a stream that ended is started again."""
        self.stop_or_begin()
        self.try_read(1000)

    def stop_or_begin(self) -> None:
        try:
            self.stop()
        except (StreamOffsetError, InvalidInputError):
            self.begin()


def change(table: Table, step: tuple[Any, ...], overwrites: bool) -> None:
    if step[0] == "write":
        put(table, *(("+I", key, step[2]) for key in step[1]))
    elif step[0] == "delete":
        put(table, *(("-D", key, None) for key in step[1]))
    elif step[0] == "overwrite" and overwrites:
        table.overwrite(pa.table({"k": pa.array(step[1], pa.int32()), "v": ["o"] * len(step[1])}))
    elif step[0] == "compact":
        table.compact(True)
    elif step[0] == "expire":
        table.maintenance.expire_snapshots(retain_last=1)
    elif step[0] == "rollback":
        ids = table._store().snapshots.ids()
        if len(ids) > 1:
            table.rollback(ids[-2])


@examples(40)
@given(
    steps=STEPS,
    producer=st.sampled_from(["none", "input", "lookup"]),
    limits=st.sampled_from([{}, {"max_files": 1}, {"max_rows": 2}, {"max_bytes": 2000}]),
    by_offset=st.booleans(),
)
def test_the_changes_of_any_history_give_the_table(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[Any, ...]],
    producer: str,
    limits: dict[str, Any],
    by_offset: bool,
) -> None:
    overwrites = producer != "lookup"
    table = table_of(tmp_path_factory.mktemp("t"), producer, bucket="2")
    follower = Follower(table, limits, by_offset, overwrites)
    for step in steps:
        if step[0] == "read":
            follower.try_read(step[1], step[2])
        elif step[0] == "stop":
            follower.stop_or_begin()
        else:
            change(table, step, overwrites)
    if producer == "lookup":
        table.compact(True)
    follower.finish()
    assert sorted(follower.state.items()) == table_rows(table)


def test_a_writer_and_expiry_run_beside_a_follower(tmp_path: Path) -> None:
    table = table_of(tmp_path, "lookup", write_only="false", snapshot__num_retained__min="1",
                     snapshot__num_retained__max="2")  # fmt: skip
    failures: list[Exception] = []

    def write() -> None:
        try:
            for number in range(25):
                put(table, ("+I", number % 7, f"v{number}"), ("-D", (number + 3) % 7, None))
                table.maintenance.expire_snapshots(retain_last=1)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    writer = threading.Thread(target=write)
    state: dict[int, str] = {}
    put(table, ("+I", 100, "first"))
    batches = table.follow(consumer_id="c", timeout=1.0, max_poll_interval=0.05, heartbeat=0.2)
    writer.start()
    for batch in batches:
        for kind, key, value in plain_rows(batch.rows):
            if kind in ("+I", "+U"):
                state[key] = value
            elif kind == "-D":
                del state[key]
        batch.done()
    writer.join()
    assert failures == [] and sorted(state.items()) == table_rows(table)


@pytest.mark.parametrize("name", ["cl_full_compaction", "cl_input", "dv_true", "dyn", "st_first1", "thin"])
def test_tables_of_java_are_followed(golden: Callable[..., GoldenTable], name: str) -> None:
    table = Table.for_path(str(golden(name).path))
    first = table._store().snapshots.ids()[0]
    expected = plain_rows(table.to_arrow(fresh=True, timestamps="text"))
    starts: list[dict[str, Any]] = [{}, {"start": "from-snapshot", "snapshot": first}]
    for start in starts:
        state: dict[Any, Any] = {}
        for batch in table.follow(**start, timeout=0, timestamps="text", max_files=1):
            keys = plain_rows(batch.rows.select(table.schema.primary_keys))
            for key, (kind, *values) in zip(keys, plain_rows(batch.rows)):
                if kind in ("+I", "+U"):
                    state[key] = tuple(values)
                elif kind == "-D":
                    state.pop(key, None)
        assert sorted(map(repr, state.values())) == sorted(map(repr, expected)) and state


def test_rows_have_the_requested_form(tmp_path: Path) -> None:
    table = table_of(tmp_path, "input", "k INT, v STRING, t TIMESTAMP(9)")
    stamps = [{"k": 1, "v": "a", "t": None}, {"k": 2, "v": "b", "t": None}]
    table.write(stamps)
    (batch,) = table.follow(timeout=0, where="v = 'b'", kind_column="op", positions=True, timestamps="text")
    assert batch.rows.to_pylist() == [
        {"op": "+I", "k": 2, "v": "b", "t": None, "_SNAPSHOT_ID": 1, "_SEQUENCE_NUMBER": None}
    ]
    assert batch.rows.schema.field("t").type == pa.string()
    table.write(stamps[1:])
    (batch,) = table.follow(batch.offset, timeout=0, positions=True)
    assert [batch.rows.column(name).to_pylist() for name in ("_SNAPSHOT_ID", "_SEQUENCE_NUMBER")] == [[2], [2]]


def test_starts_and_branches(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    for number in (1, 2, 3):
        put(table, ("+I", number, "a"))

    def keys(of: Table, *arguments: Any, **more: Any) -> list[int]:
        return [row[1] for batch in of.follow(*arguments, timeout=0, **more) for row in plain_rows(batch.rows)]

    assert keys(table, "from-snapshot", snapshot=2) == [2, 3]
    assert keys(table, "latest") == keys(table, "from-timestamp", timestamp="2999-01-01") == []
    table.tags.create("t", snapshot=3)
    assert keys(table, "from-snapshot", snapshot="tag:t") == keys(table, "from-snapshot", snapshot="t") == [3]
    table.branches.create("b", "t")
    branch = table.branches.open("b")
    put(branch, ("+I", 9, "b"))
    assert keys(branch) == [1, 2, 3, 9] and keys(branch, "from-snapshot", snapshot=4) == [9]
    (batch,) = branch.follow(timeout=0, consumer_id="c")
    batch.done()
    assert [each.name for each in branch.consumers.list()] == ["c"] and table.consumers.list() == []
    with pytest.raises(StreamOffsetError, match="is of another table"):
        table.follow(batch.offset)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"start": "newest"}, InvalidInputError, "start: "),
        ({"start": "incremental"}, InvalidInputError, "start: "),
        ({"start": 3}, InvalidInputError, "start: "),
        ({"start": None}, InvalidInputError, "start: "),
        ({"start": {}}, StreamOffsetError, "offset: "),
        ({"start": "from-snapshot"}, InvalidInputError, "snapshot: .* is missing"),
        ({"start": "from-timestamp"}, InvalidInputError, "timestamp: .* is missing"),
        ({"snapshot": 1}, InvalidInputError, "snapshot: .* has no effect"),
        ({"start": "from-snapshot", "snapshot": 1, "timestamp": "2026-01-01"}, InvalidInputError, "timestamp: "),
        ({"start": "from-snapshot", "snapshot": 0}, InvalidInputError, "snapshot: 0 is less than 1"),
        ({"start": "from-snapshot", "snapshot": 1.5}, InvalidInputError, "snapshot: "),
        ({"start": "from-snapshot", "snapshot": 9}, SnapshotNotFoundError, "cannot start at snapshot 9"),
        ({"consumer_id": "a/b"}, InvalidInputError, "consumer_id"),
        ({"kind_column": "v"}, InvalidInputError, "kind_column: 'v' is the name"),
        ({"where": "rand() = 2"}, UnsupportedFeatureError, "rand"),
        ({"positions": 1}, InvalidInputError, "positions"),
        ({"timestamps": "s"}, InvalidInputError, "timestamps"),
        ({"overwrites": "yes"}, InvalidInputError, "overwrites"),
        ({"overwrites": True}, InvalidInputError, "overwrites: changes would be read twice"),
        ({"fail_on_data_loss": 0}, InvalidInputError, "fail_on_data_loss"),
        ({"max_rows": 0}, InvalidInputError, "max_rows: 0 is less than 1"),
        ({"max_bytes": "1 mb"}, InvalidInputError, "max_bytes"),
        ({"max_files": -1}, InvalidInputError, "max_files"),
        ({"max_poll_interval": 0}, InvalidInputError, "max_poll_interval: 0 is not more than 0"),
        ({"heartbeat": "often"}, InvalidInputError, "heartbeat: 'often' is not a duration"),
        ({"heartbeat": 0}, InvalidInputError, "heartbeat: 0 is not more than 0"),
        ({"timeout": -1}, InvalidInputError, "timeout: -1 is not a duration"),
    ],
)
def test_wrong_arguments_are_refused_before_any_row(
    tmp_path: Path, arguments: dict[str, Any], kind: type[LakelsmError], message: str
) -> None:
    table = table_of(tmp_path, "lookup")
    with pytest.raises(kind, match=message):
        table.follow(**arguments)
    assert table.consumers.list() == []
