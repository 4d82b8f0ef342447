"""Level-0 tasks whose rows are sorted by key alone: their files equal those of rows that are sorted by bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.environment import SYSTEM
from lakelsm.errors import CorruptTableError
from lakelsm.format.data_file.key_value_file import FileLayout
from lakelsm.format.data_file.rolling_writer import RollingWriter
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.paths import TablePaths
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.options import TableOptions
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.schema.system_columns import BUCKET, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import create_schema
from lakelsm.storage import LocalFileIO
from lakelsm.write.level0_task import Level0Job
from tests.examples import examples

#: (partition, bucket, key, value, kind)
Row = tuple[float, int, str, int | None, int]

ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "deduplicate-sequence": {"sequence.field": "v"},
    "deduplicate-input": {"changelog-producer": "input"},
    "ignore-delete": {"ignore-delete": "true"},
    "first-row": {"merge-engine": "first-row"},
    "partial-update": {"merge-engine": "partial-update"},
    "sum": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "first": {
        "merge-engine": "aggregation",
        "fields.v.aggregate-function": "first_value",
        "fields.v.ignore-retract": "true",
    },
}


def job_of(root: Path, engine: str, **changes: Any) -> Level0Job:
    options = {"bucket": "3", **ENGINES[engine]}
    schema = create_schema("p DOUBLE, k STRING, v INT", ["p", "k"], ["p"], options)
    parsed = TableOptions.parse(schema.options)
    layout = FileLayout.of(schema, parsed)
    job = Level0Job(
        file_io=LocalFileIO(),
        paths=TablePaths(str(root)),
        layout=layout,
        spec=MergeSpec.of(schema, parsed),
        first_sequence=100,
        total_buckets=3,
        partition_default_name="__DEFAULT_PARTITION__",
        partition_legacy_name=True,
        batch_bytes=1 << 20,
        changelog_layout=layout.for_changelog(parsed) if "changelog-producer" in options else None,
        names=AttemptNames.new(SYSTEM.new_uuid),
    )
    return replace(job, **changes)


def batches(rows: Sequence[tuple[int, Row]], size: int) -> Iterator[pa.RecordBatch]:
    """Return rows in this order, each with its position in the input."""
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        yield pa.RecordBatch.from_pydict(
            {
                "p": pa.array([row[0] for _, row in part], pa.float64()),
                "k": pa.array([row[2] for _, row in part], pa.string()),
                "v": pa.array([row[3] for _, row in part], pa.int32()),
                VALUE_KIND: pa.array([row[4] for _, row in part], pa.int8()),
                SEQUENCE_NUMBER: pa.array([position for position, _ in part], pa.int64()),
                BUCKET: pa.array([row[1] for _, row in part], pa.int32()),
            }
        )


def files(root: Path, job: Level0Job, parts: Iterator[pa.RecordBatch]) -> dict[Any, list[dict[str, Any]]]:
    """The rows of each bucket's data files and changelog files."""
    (message,) = list(job(parts))
    found = TaskMessages.of_row([column[0].as_py() for column in message.columns])
    rows: dict[Any, list[dict[str, Any]]] = {}
    for what, entries in (("data", found.entries), ("changelog", found.changelog_entries)):
        for entry in entries:
            (path,) = root.rglob(entry.file.file_name)
            assert f"bucket-{entry.bucket}" in str(path)
            table = pq.read_table(path, partitioning=None)
            assert entry.file.row_count == len(table)
            rows.setdefault((what, entry.partition, entry.bucket), []).extend(table.drop_columns("p").to_pylist())
    return rows


ROWS = st.lists(
    st.tuples(
        st.sampled_from([0.0, -0.0, 1.5, float("nan")]),
        st.integers(0, 2),
        st.sampled_from(["", "a", "a\0", "ab", "z" * 60, "é"]),
        st.none() | st.integers(0, 3),
        st.integers(0, 3),
    ),
    max_size=50,
)


@examples(25)
@given(
    rows=ROWS,
    engine=st.sampled_from(sorted(ENGINES)),
    size=st.integers(1, 20),
    batch_bytes=st.sampled_from([1, 300, 1 << 20]),
    group_bytes=st.sampled_from([1, 500, 1 << 20]),
)
def test_rows_by_key_give_the_same_files_as_rows_by_bucket(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Row],
    engine: str,
    size: int,
    batch_bytes: int,
    group_bytes: int,
) -> None:
    root = tmp_path_factory.mktemp("t")
    if engine in ("first-row", "partial-update"):  # These engines refuse retractions.
        rows = [(*row[:4], 0) for row in rows]
    numbered = list(enumerate(rows))
    grouped = job_of(root / "grouped", engine)
    by_bucket = sorted(numbered, key=lambda pair: (str(pair[1][0]), pair[1][1], pair[1][2].encode(), pair[0]))
    expected = files(root / "grouped", grouped, batches(by_bucket, 1 << 30))
    layout = replace(grouped.layout, row_group_bytes=group_bytes)
    mixed = job_of(root / "mixed", engine, interleaved=True, batch_bytes=batch_bytes, layout=layout)
    by_key = sorted(numbered, key=lambda pair: (pair[1][2].encode(), pair[0]))
    assert files(root / "mixed", mixed, batches(by_key, size)) == expected


def test_pending_rows_of_all_buckets_have_at_most_the_bytes_of_one_row_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending: dict[int, int] = {}
    most = []
    write = RollingWriter.write

    def spy(writer: RollingWriter, rows: pa.Table) -> None:
        write(writer, rows)
        pending[id(writer)] = writer.pending_bytes
        most.append(sum(pending.values()))

    ends = RollingWriter.write_pending

    def spy_end(writer: RollingWriter) -> None:
        ends(writer)
        pending[id(writer)] = 0

    monkeypatch.setattr(RollingWriter, "write", spy)
    monkeypatch.setattr(RollingWriter, "write_pending", spy_end)
    job = job_of(tmp_path, "deduplicate", interleaved=True, batch_bytes=4_000)
    job = replace(job, layout=replace(job.layout, row_group_bytes=20_000))
    rows = [(position, (0.0, position % 3, f"{position:06d}", 1, 0)) for position in range(6_000)]
    assert len(files(tmp_path, job, batches(rows, 500))) == 3
    assert 18_000 < max(most) < 26_000, "a row group, and the batch that reaches its size"


def test_pending_buckets_keep_only_their_own_rows_in_memory(tmp_path: Path) -> None:
    before = pa.total_allocated_bytes()
    most = []

    def parts() -> Iterator[pa.RecordBatch]:
        for at in range(25):
            rows = [(position, (0.0, int(position == 0), f"{at:03d}{position:0300d}", 1, 0)) for position in range(4_000)]
            yield from batches(rows, 1 << 30)
            most.append(pa.total_allocated_bytes() - before)

    job = job_of(tmp_path, "deduplicate", interleaved=True)
    job = replace(job, layout=replace(job.layout, row_group_bytes=2 << 20))
    files(tmp_path, job, parts())
    assert max(most) < 12 << 20, "one row a batch of bucket 1 would keep all of its batches: 31 MB"


def test_rows_of_a_bucket_out_of_key_order_are_refused(tmp_path: Path) -> None:
    rows = [(0, (0.0, 0, "b", 1, 0)), (1, (0.0, 1, "c", 1, 0)), (2, (0.0, 0, "a", 1, 0))]
    with pytest.raises(CorruptTableError, match="not in key order"):
        files(tmp_path, job_of(tmp_path, "deduplicate", interleaved=True, batch_bytes=1), batches(rows, 1))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
