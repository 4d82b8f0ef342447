"""Arrow rows become level-0 files of a commit; a read returns the rows of the reference merge."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError, StorageError
from lakelsm.local.arrow_input import ArrowInput
from lakelsm.local.arrow_rows import prepare_arrow
from lakelsm.local.arrow_writer import ArrowWriter
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.write.batch_write import BatchResult, BatchWriter
from tests.compact.local_table import LocalTable
from tests.oracle import Model

COLUMNS = "id BIGINT NOT NULL, p STRING, v STRING"
SPILLING = {"write_buffer_size": "1 b"}


def write(
    table: LocalTable, frame: pa.Table, row_kind: str | None = None, step: Any = None, **options: str
) -> BatchResult:
    store = table.store.with_options({key.replace("_", "-"): value for key, value in options.items()})
    rows = prepare_arrow(ArrowInput.of(frame), store.schema, store.options, row_kind)
    return BatchWriter(ArrowWriter(LocalRunner(), store), store, step).append(rows, "user")


def frame(rows: Sequence[tuple[int, str, str | None, str]]) -> pa.Table:
    kinds = (pa.int64(), pa.string(), pa.string(), pa.string())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows), kinds)]
    return pa.Table.from_arrays(columns, names=["id", "p", "v", "op"])


def plain_rows(table: LocalTable) -> list[tuple[Any, ...]]:
    """Return the rows after a full compaction, because `LocalTable.rows` does not support sequence fields."""
    table.compact()
    names = table.store.schema.field_names
    return [tuple(row.values()) for entry in table.live() for row in table.stored(entry).select(names).to_pylist()]


ROW = st.tuples(
    st.integers(0, 12), st.sampled_from("ab"), st.none() | st.text(max_size=2), st.sampled_from(["+I", "+U", "-D", "-U"])
)
BATCHES = st.lists(st.lists(ROW, min_size=1, max_size=12), min_size=1, max_size=4)
LAYOUTS: list[dict[str, str]] = [
    {"bucket": "1"},
    {"bucket": "3"},
    {"bucket": "-1", "dynamic_bucket__target_row_num": "4"},
]


@settings(deadline=None, max_examples=25)
@given(BATCHES, st.sampled_from(LAYOUTS), st.booleans(), st.booleans(), st.booleans())
def test_a_read_returns_the_rows_of_the_reference_merge(
    batches: list[list[tuple[int, str, str | None, str]]],
    layout: dict[str, str],
    partitioned: bool,
    spilling: bool,
    by_sequence: bool,
) -> None:
    key = ("id", "p") if partitioned else ("id",)
    options = {**layout, **({"sequence__field": "v"} if by_sequence else {})}
    model = Model(key, ("v",) if by_sequence else ())
    with tempfile.TemporaryDirectory() as directory:
        table = LocalTable(Path(directory) / "t", COLUMNS, key, ("p",) if partitioned else (), **options)
        for rows in batches:
            model.write([{"id": k, "p": p, "v": v} for k, p, v, _ in rows], [op for *_, op in rows])
            write(table, frame(rows), "op", **(SPILLING if spilling else {}))
        expected = [tuple(row.values()) for row in model.rows()]
        assert sorted(plain_rows(table), key=repr) == sorted(expected, key=repr)


def stored(table: LocalTable) -> list[Any]:
    """Return all rows of all files, with sequence numbers, by bucket."""
    entries = sorted(table.live(), key=lambda entry: (entry.partition, entry.bucket, entry.file.min_key))
    return [(entry.bucket, *row.values()) for entry in entries for row in table.stored(entry).to_pylist()]


@pytest.mark.parametrize(
    "options",
    [
        {"bucket": "1"},
        {"bucket": "3", "changelog_producer": "input"},
        {"bucket": "-1", "dynamic_bucket__target_row_num": "10000", "merge_engine": "partial-update"},
    ],
    ids=str,
)
def test_an_input_larger_than_memory_gives_the_same_rows(tmp_path: Path, options: dict[str, str]) -> None:
    generator = np.random.default_rng(5)
    ids = generator.integers(0, 40_000, 150_000)
    rows = pa.table({"id": ids, "p": pa.array(np.char.mod("p%d", ids % 3)), "v": np.char.mod("v%d", np.arange(len(ids)))})
    tables = []
    for name, memory in (("held", "1 gb"), ("spilled", "1 mb")):
        table = LocalTable(tmp_path / name, COLUMNS, ("id", "p"), ("p",), **options)
        result = write(table, rows, write_buffer_size=memory)
        assert sum(entry.file.row_count for entry in result.entries) == len(np.unique(ids))
        tables.append(table)
    assert stored(tables[0]) == stored(tables[1])


def test_the_later_row_of_a_key_wins_across_batches_and_runs(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "id BIGINT NOT NULL, v BIGINT")
    count = 300_000
    write(table, pa.table({"id": np.zeros(count, np.int64), "v": np.arange(count)}), write_buffer_size="1 mb")
    assert table.rows() == [(0, count - 1)]


def test_an_empty_write_creates_no_snapshot(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "id BIGINT NOT NULL, v BIGINT")
    none = pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.int64())})
    assert write(table, none).outcome.snapshot is None


def test_a_faulty_row_leaves_nothing_behind(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "id BIGINT NOT NULL, v BIGINT")
    ids = pa.array([*range(100_000), None], pa.int64())
    with pytest.raises(InvalidInputError, match="key column 'id' is NULL"):
        write(table, pa.table({"id": ids, "v": ids}), write_buffer_size="1 kb")
    assert table.store.snapshots.latest() is None and table.data_files() == set()


def test_full_scratch_space_leaves_nothing_behind(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, "id BIGINT NOT NULL, v BIGINT")
    ids = np.arange(200_000)
    with pytest.raises(StorageError, match="'write-buffer-spill.max-disk-size'"):  # noqa: RUF043
        write(
            table,
            pa.table({"id": ids, "v": ids}),
            **{"write_buffer_size": "1 mb", "write_buffer_spill.max_disk_size": "1 mb"},
        )
    assert table.store.snapshots.latest() is None and table.data_files() == set()


@pytest.mark.parametrize("options", [{}, {"changelog_producer": "input"}, {"bucket": "-1"}], ids=str)
def test_a_batch_whose_numbers_were_taken_is_written_again_from_its_files(
    tmp_path: Path, options: dict[str, str]
) -> None:
    table = LocalTable(tmp_path, "id BIGINT NOT NULL, v STRING", **{"bucket": "2", **options})
    raced = []

    def race(step: str) -> None:
        if step == "data-files-written" and not raced:
            raced.append(table.write(*((k, "theirs") for k in range(8))))

    rows = pa.table({"id": [3, 4, 3, 20], "v": ["old", "mine", "mine", "mine"]})
    result = write(table, rows, step=race)
    assert raced and {entry.file.level for entry in result.entries} == {0}
    assert table.rows() == [
        *((k, "mine" if k in (3, 4) else "theirs") for k in range(8)),
        (20, "mine"),
    ]
    if "changelog_producer" in options:
        assert table.latest.changelog_record_count == 4


def test_small_buckets_share_a_task_and_large_ones_do_not(tmp_path: Path) -> None:
    class Counting(LocalRunner):
        units = 0

        def messages(self, units: Sequence[Any], *rest: Any) -> TaskMessages:
            self.units = len(units)
            return super().messages(units, *rest)

    table = LocalTable(tmp_path, "id BIGINT NOT NULL, v STRING", bucket="50")
    runner, store = Counting(), table.store
    for count, units in ((1000, 1), (1_000_000, 2)):
        rows = pa.table({"id": np.arange(count), "v": pa.nulls(count, pa.string())})
        prepared = prepare_arrow(ArrowInput.of(rows), store.schema, store.options)
        BatchWriter(ArrowWriter(runner, store), store).append(prepared, "user")
        assert runner.units >= units
