"""The task that writes level-0 files: sorted rows in, files and their entries out. No JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.environment import SYSTEM
from lakelsm.errors import CorruptTableError
from lakelsm.format.data_file.key_value_file import FileLayout
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.index.hash_index import decode_hashes, encode_hashes
from lakelsm.format.index.index_manifest import HASH_INDEX, IndexManifestEntry
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.paths import TablePaths
from lakelsm.format.row.binary_row import decode_row, encode_row
from lakelsm.format.row.bucket_hash import key_hashes
from lakelsm.merge.kernel import merge_rows
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.options import TableOptions
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.schema.system_columns import BUCKET, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.snapshots.hash_indexes import HashIndex
from lakelsm.storage import LocalFileIO
from lakelsm.write import level0_task
from lakelsm.write.level0_task import Level0Job
from tests.examples import examples

FIRST = 1000
#: (partition, bucket, key, value, kind)
Row = tuple[str, int, int, str, int]


@dataclass
class Written:
    """The outcome of a task."""

    root: Path
    entries: list[ManifestEntry]
    indexes: list[IndexManifestEntry]

    def path(self, entry: ManifestEntry) -> Path:
        (partition,) = decode_row(entry.partition, [STRING])
        return self.root / f"p={partition}" / f"bucket-{entry.bucket}" / entry.file.file_name

    def rows(self, entry: ManifestEntry) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = pq.read_table(self.path(entry), partitioning=None).to_pylist()
        return rows

    def files(self) -> set[Path]:
        return {path for path in self.root.rglob("*") if path.is_file()}


def schema_of(**options: str) -> TableSchema:
    return create_schema(
        "p STRING NOT NULL, k INT NOT NULL, v STRING", ["p", "k"], ["p"], {"bucket": "4", **options}, None, 0
    )


STRING, INT = (schema_of().field(name).type for name in ("p", "k"))


def job_of(root: Path, batch_bytes: int = 1 << 20, row_group_bytes: int = 1 << 20, **more: Any) -> Level0Job:
    options = more.pop("options", {})
    schema = schema_of(**options)
    parsed = TableOptions.parse(dict(schema.options))
    arguments: dict[str, Any] = {
        "file_io": LocalFileIO(),
        "paths": TablePaths(str(root)),
        "layout": FileLayout.of(schema, parsed, row_group_bytes),
        "spec": MergeSpec.of(schema, parsed),
        "first_sequence": FIRST,
        "total_buckets": 4,
        "partition_default_name": "__DEFAULT__",
        "partition_legacy_name": True,
        "batch_bytes": batch_bytes,
        "names": AttemptNames.new(SYSTEM.new_uuid),
    }
    return Level0Job(**{**arguments, **more})


def batches(rows: Sequence[Row], size: int = 1 << 30) -> Iterator[pa.RecordBatch]:
    """Rows in the order of the shuffle (partition, bucket, key), later ones with a greater order, as batches."""
    numbered = sorted(enumerate(rows), key=lambda pair: (*pair[1][:3], pair[0]))
    for start in range(0, len(numbered), size):
        part = numbered[start : start + size]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([row[0] for _, row in part], pa.string()),
                pa.array([row[2] for _, row in part], pa.int32()),
                pa.array([row[3] for _, row in part], pa.string()),
                pa.array([row[4] for _, row in part], pa.int8()),
                pa.array([order for order, _ in part], pa.int64()),
                pa.array([row[1] for _, row in part], pa.int32()),
            ],
            names=["p", "k", "v", VALUE_KIND, SEQUENCE_NUMBER, BUCKET],
        )


def run(job: Level0Job, parts: Iterator[pa.RecordBatch]) -> Written:
    (message,) = list(job(parts))
    found = TaskMessages.of_row([column[0].as_py() for column in message.columns])
    return Written(Path(job.paths.root), found.entries, found.index_entries)


def write(root: Path, rows: Sequence[Row], size: int = 1 << 30, **more: Any) -> Written:
    return run(job_of(root, **more), batches(rows, size))


def test_the_file_of_a_bucket_has_one_row_for_each_key_in_key_order(tmp_path: Path) -> None:
    rows = [("a", 0, 5, "old", 0), ("a", 1, 4, "x", 0), ("b", 0, 5, "y", 0), ("a", 0, 2, "z", 0), ("a", 0, 5, "new", 2)]
    written = write(tmp_path, rows)
    buckets = [(decode_row(entry.partition, [STRING])[0], entry.bucket) for entry in written.entries]
    assert buckets == [("a", 0), ("a", 1), ("b", 0)]
    first = written.entries[0]
    assert [(row["_KEY_k"], row["k"], row["v"], row["_VALUE_KIND"]) for row in written.rows(first)] == [
        (2, 2, "z", 0),
        (5, 5, "new", 2),
    ]
    assert written.files() == {written.path(entry) for entry in written.entries}
    assert all(entry.kind == FileKind.ADD and entry.total_buckets == 4 for entry in written.entries)


def test_sequence_numbers_of_each_bucket_begin_at_the_first_and_have_no_gap(tmp_path: Path) -> None:
    written = write(tmp_path, [("a", bucket, key, "v", 0) for bucket in (0, 1) for key in range(5)])
    for entry in written.entries:
        numbers = [row["_SEQUENCE_NUMBER"] for row in written.rows(entry)]
        assert numbers == list(range(FIRST, FIRST + 5))
        assert (entry.file.min_sequence_number, entry.file.max_sequence_number) == (FIRST, FIRST + 4)


def test_the_entry_has_key_range_row_counts_and_level(tmp_path: Path) -> None:
    kinds = {-7: 0, 1: 3, 2: 1, 9: 2}
    (entry,) = write(tmp_path, [("a", 2, key, "v", kind) for key, kind in kinds.items()]).entries
    file = entry.file
    assert (file.row_count, file.delete_row_count, file.level, file.file_source) == (4, 2, 0, 0)
    assert (decode_row(file.min_key, [INT]), decode_row(file.max_key, [INT])) == ((-7,), (9,))
    assert file.min_key == encode_row([-7], [INT])
    assert (file.schema_id, file.embedded_index, file.external_path, file.extra_files) == (0, None, None, ())
    path = tmp_path / "p=a" / "bucket-2" / file.file_name
    assert file.file_size == path.stat().st_size and file.file_name.startswith("data-")


def test_files_roll_at_the_target_size_and_continue_keys_and_sequence_numbers(tmp_path: Path) -> None:
    rows = [("a", 0, key, f"{key * 7919:040d}", 0) for key in range(4000)]
    options = {"target-file-size": "8 kb", "file.compression": "none"}
    written = write(tmp_path, rows, size=300, batch_bytes=1, row_group_bytes=4096, options=options)
    assert len(written.entries) > 5
    names = [entry.file.file_name for entry in written.entries]
    assert len({name.rsplit("-", 1)[0] for name in names}) == 1
    assert [int(name.rsplit("-", 1)[1].split(".")[0]) for name in names] == list(range(len(names)))
    keys = [row["k"] for entry in written.entries for row in written.rows(entry)]
    numbers = [row["_SEQUENCE_NUMBER"] for entry in written.entries for row in written.rows(entry)]
    assert keys == list(range(4000)) and numbers == list(range(FIRST, FIRST + 4000))
    assert all(entry.file.file_size >= 8192 for entry in written.entries[:-1])
    for entry in written.entries:
        inside = [row["k"] for row in written.rows(entry)]
        assert (decode_row(entry.file.min_key, [INT]), decode_row(entry.file.max_key, [INT])) == (
            (inside[0],),
            (inside[-1],),
        )


def test_without_rows_no_file_is_written(tmp_path: Path) -> None:
    written = run(job_of(tmp_path), iter([]))
    assert (written.entries, written.indexes) == ([], []) and written.files() == set()
    empty = next(batches([("a", 0, 1, "v", 0)])).slice(0, 0)
    assert run(job_of(tmp_path), iter([empty])).entries == []


def test_thin_files_have_no_key_columns(tmp_path: Path) -> None:
    written = write(tmp_path, [("a", 0, 1, "v", 0)], options={"data-file.thin-mode": "true"})
    assert list(written.rows(written.entries[0])[0]) == ["_SEQUENCE_NUMBER", "_VALUE_KIND", "p", "k", "v"]


def test_rows_out_of_key_order_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    ordered = list(batches([("a", 0, key, "v", 0) for key in range(10)], size=1))
    with pytest.raises(CorruptTableError, match="not in key order"):
        run(job_of(tmp_path, batch_bytes=1), iter(ordered[5:] + ordered[:5]))
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set()


def test_a_failing_input_leaves_no_file_of_its_bucket(tmp_path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches([("a", 0, key, "v" * 100, 0) for key in range(500)], size=50)
        raise RuntimeError("the input failed")

    with pytest.raises(RuntimeError, match="the input failed"):
        run(job_of(tmp_path, batch_bytes=1, row_group_bytes=1, options={"target-file-size": "1 kb"}), failing())
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set()


def hashes_of(*keys: int) -> set[int]:
    return set(key_hashes([pa.array(keys, pa.int32())], [INT]).tolist())


def test_a_dynamic_bucket_gets_a_hash_index_of_old_and_new_keys(tmp_path: Path) -> None:
    partition = encode_row(["a"], [STRING])
    known = tmp_path / "known"
    known.write_bytes(encode_hashes(np.array(sorted(hashes_of(1, 2)), np.int32)))
    rows = [("a", 0, 2, "v", 0), ("a", 0, 3, "v", 0), ("a", 0, 3, "w", 0), ("a", 1, 9, "v", 3)]
    index = HashIndex(str(known), "bucket 0", 8, 2)
    more: dict[str, Any] = {"total_buckets": -1, "hash_indexes": {(partition, 0): index}}
    written = write(tmp_path / "t", rows, **more)
    assert [(entry.bucket, entry.file.row_count) for entry in written.indexes] == [(0, 3), (1, 1)]
    for entry, keys in zip(written.indexes, [(1, 2, 3), (9,)], strict=True):
        assert (entry.partition, entry.file.index_type, entry.kind) == (partition, HASH_INDEX, FileKind.ADD)
        data = (tmp_path / "t" / "index" / entry.file.file_name).read_bytes()
        assert entry.file.file_size == len(data)
        assert set(decode_hashes(data, "index").tolist()) == hashes_of(*keys)
    assert all(entry.total_buckets == -1 for entry in written.entries)


def test_a_dynamic_bucket_without_new_keys_keeps_its_hash_index(tmp_path: Path) -> None:
    partition = encode_row(["a"], [STRING])
    known = tmp_path / "known"
    known.write_bytes(encode_hashes(np.array(sorted(hashes_of(1, 2)), np.int32)))
    index = HashIndex(str(known), "bucket 0", 8, 2)
    more: dict[str, Any] = {"total_buckets": -1, "hash_indexes": {(partition, 0): index}}
    assert write(tmp_path / "t", [("a", 0, 2, "v", 0)], **more).indexes == []


@examples(40)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from("ab"), st.integers(0, 2), st.integers(-4, 4), st.text(max_size=3), st.integers(0, 3)
        ),
        max_size=60,
    ),
    size=st.integers(1, 20),
    batch_bytes=st.sampled_from([1, 200, 1 << 20]),
)
def test_files_have_the_last_row_of_each_key_for_any_batch_sizes(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], size: int, batch_bytes: int
) -> None:
    written = write(tmp_path_factory.mktemp("t"), rows, size=size, batch_bytes=batch_bytes)
    last = {(p, bucket, key): (value, kind) for p, bucket, key, value, kind in rows}
    found = {
        (row["p"], entry.bucket, row["k"]): (row["v"], row["_VALUE_KIND"])
        for entry in written.entries
        for row in written.rows(entry)
    }
    assert found == last
    assert sum(entry.file.row_count for entry in written.entries) == len(last)
    assert len(written.entries) == len({(p, bucket) for p, bucket, *_ in rows})


def test_a_large_batch_of_spark_is_merged_in_limited_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    merged: list[int] = []

    def spy(rows: pa.Table, *arguments: Any) -> pa.Table:
        merged.append(rows.nbytes)
        return merge_rows(rows, *arguments)

    monkeypatch.setattr(level0_task, "merge_rows", spy)
    wide = [("a", 0, key // 2, "x" * (10_000 if key > 900 else 10), 0) for key in range(1_000)]
    written = write(tmp_path, wide, batch_bytes=100_000)
    assert max(merged) < 220_000, "at most two parts, and the row that was kept"
    assert sum(entry.file.row_count for entry in written.entries) == 500


def test_a_failing_bucket_deletes_the_files_of_finished_buckets(tmp_path: Path) -> None:
    def rows(parts: str, keys: range) -> Iterator[pa.RecordBatch]:
        return batches([(part, bucket, key, "x", 0) for part in parts for bucket in range(2) for key in keys])

    def parts() -> Iterator[pa.RecordBatch]:
        yield from rows("ab", range(9))
        assert any(tmp_path.rglob("*.parquet")), "buckets are done"
        yield from rows("b", range(5, 0, -1))
        raise OSError("the input ended")

    with pytest.raises(OSError, match="the input ended"):
        list(job_of(tmp_path, batch_bytes=1)(parts()))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_message_that_is_not_taken_leaves_no_file(tmp_path: Path) -> None:
    messages = job_of(tmp_path)(batches([("a", 0, 1, "x", 0)]))
    next(messages)
    assert any(tmp_path.rglob("*.parquet"))
    messages.close()  # type: ignore[attr-defined]
    assert not any(tmp_path.rglob("*.parquet"))


def test_each_of_many_buckets_has_its_own_key_range_and_statistics(tmp_path: Path) -> None:
    rows = [(f"p{part:03d}", part % 4, key + part, f"v{part:03d}", 0) for part in range(40) for key in range(2)]
    written = write(tmp_path, rows, size=7, options={"lakelsm.durable-files": "false"})
    assert len(written.entries) == 40
    for part, entry in enumerate(written.entries):
        stored = written.rows(entry)
        assert (entry.partition, entry.bucket) == (encode_row([f"p{part:03d}"], [STRING]), part % 4)
        assert [row["k"] for row in stored] == [part, part + 1] and entry.file.row_count == 2
        assert (entry.file.min_key, entry.file.max_key) == tuple(encode_row([row["k"]], [INT]) for row in stored)
        low, high = (decode_row(side, [STRING, INT, STRING]) for side in _value_bounds(entry))
        assert (low, high) == ((f"p{part:03d}", part, f"v{part:03d}"), (f"p{part:03d}", part + 1, f"v{part:03d}"))
        assert entry.file.value_stats.null_counts == (0, 0, 0)


def _value_bounds(entry: ManifestEntry) -> tuple[bytes, bytes]:
    return entry.file.value_stats.min_values, entry.file.value_stats.max_values


def test_a_time_of_a_dataframe_has_the_same_partition_as_one_of_arrow(tmp_path: Path) -> None:
    schema = create_schema("p TIME(3), k INT", ["p", "k"], ["p"], {"bucket": "1"})
    options = TableOptions.parse(dict(schema.options))
    more = {"layout": FileLayout.of(schema, options), "spec": MergeSpec.of(schema, options)}
    for folder, kind in (("numbers", pa.int32()), ("times", pa.time32("ms"))):
        rows = [pa.array([3_723_004], kind), pa.array([1], pa.int32()), pa.array([0], pa.int8())]
        batch = pa.RecordBatch.from_arrays(
            [*rows, pa.array([0]), pa.array([0], pa.int32())], names=["p", "k", VALUE_KIND, SEQUENCE_NUMBER, BUCKET]
        )
        written = run(job_of(tmp_path / folder, **more), iter([batch]))
        (entry,) = written.entries
        assert entry.partition == encode_row([3_723_004], [schema.field("p").type])
        assert [path.parent.parent.name for path in written.files()] == ["p=3723004"]
