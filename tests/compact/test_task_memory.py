"""A compaction task keeps its memory limit for any size of the bucket. Measured in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.compact.local_table import LocalTable

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
BOUND = 32 * MIB
#: The memory of a process besides its rows: codecs, the reserve of allocators, and pages of open files.
OVERHEAD = 48 * MIB

#: Compacts a table in a process and prints the growth of its peak memory (bytes), and the peak of Arrow.
CHILD = """
import json, sys
from pathlib import Path
import pyarrow as pa
from tests.compact.local_table import LocalTable

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

LocalTable(Path(sys.argv[2])).compact(task_memory=int(sys.argv[3]))  # what is loaded once, is loaded now
before = peak()
table = LocalTable(Path(sys.argv[1]))
result = table.compact(full=sys.argv[4] == "full", task_memory=int(sys.argv[3]))
pool = pa.default_memory_pool()
rows = result.rows_written or result.rows_masked
print(json.dumps([peak() - before, pool.max_memory(), table.runner.tasks, rows]))
"""

needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")


def rows(ids: np.ndarray) -> pa.Table:
    """Return rows of about 2.4 kB each."""
    keys = pa.array(ids)
    return pa.table({"id": keys, "v": pc.binary_repeat(keys.cast(pa.string()), 400)})


def measured(tmp_path: Path, table: LocalTable, full: bool = True, bound: int = BOUND) -> tuple[int, int, int, int]:
    """Return the growth of a process that compacts the table, Arrow's part of it, and the numbers of tasks and of written
    rows (of masked rows if none are written).
    """
    tiny = LocalTable(tmp_path / "tiny")
    for _ in range(2):
        tiny.write((1, "a"))
    scope = "full" if full else "ordinary"
    command = [sys.executable, "-c", CHILD, str(table.root), str(tiny.root), str(bound), scope]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    grown, arrow, tasks, counted = json.loads(done.stdout)
    return grown, arrow, tasks, counted


@needs_proc
def test_a_bucket_ten_times_larger_than_the_bound_is_compacted_within_it(tmp_path: Path) -> None:
    count, parts = 140_000, 10
    table = LocalTable(tmp_path / "t", "id BIGINT NOT NULL, v STRING", target_file_size="10 gb")
    for first in range(0, count, count // parts):
        table.write_columns(rows(np.arange(first, first + count // parts)))
    for remainder in (0, 1):
        table.write_columns(rows(np.arange(remainder, count, 32)))
    assert rows(np.arange(count - 100, count)).nbytes / 100 * count >= 10 * BOUND
    grown, arrow, tasks, written = measured(tmp_path, table)
    assert (tasks, written) == (1, count), "one task compacts the whole bucket"
    assert arrow <= BOUND
    assert grown <= BOUND + OVERHEAD


@needs_proc
@pytest.mark.parametrize("narrow", [0, 7_500], ids=["wide", "narrow rows first"])
def test_rows_whose_width_a_dictionary_hides_are_compacted_within_the_bound(tmp_path: Path, narrow: int) -> None:
    columns = [f"c{number}" for number in range(10)]
    declared = ", ".join(f"{name} STRING" for name in columns)
    table = LocalTable(tmp_path / "t", f"id BIGINT NOT NULL, {declared}", target_file_size="10 gb")
    count = 15_000
    values = pa.array([f"{number:04d}" * 256 for number in range(80)])
    for first in range(3):
        ids = np.arange(first, count, 3)
        texts = pc.if_else(pa.array(ids >= narrow), values.take(pa.array(ids * 7 % 80)), "x")
        table.write_columns(pa.table({"id": pa.array(ids), **dict.fromkeys(columns, texts)}))
    assert sum(entry.file.file_size for entry in table.live()) < 2 * MIB
    grown, arrow, tasks, written = measured(tmp_path, table)
    assert (tasks, written) == (1, count)
    assert arrow <= BOUND
    assert grown <= BOUND + OVERHEAD


@needs_proc
@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"], ids=["keys alone", "whole rows"])
def test_half_of_a_bucket_ten_times_larger_than_the_bound_is_looked_up_within_it(tmp_path: Path, engine: str) -> None:
    bound, count = BOUND // 4, 42_000
    table = LocalTable(
        tmp_path / "t",
        "id BIGINT NOT NULL, v STRING",
        target_file_size="10 gb",
        deletion_vectors__enabled="true",
        merge_engine=engine,
    )
    table.write_columns(rows(np.arange(count)))
    table.compact()
    assert rows(np.arange(count - 100, count)).nbytes / 100 * count >= 10 * bound
    halves = np.arange(0, count, 2)
    table.write_columns(pa.table({"id": halves, "v": pa.repeat("new", len(halves))}))
    grown, arrow, tasks, counted = measured(tmp_path, table, full=False, bound=bound)
    assert (tasks, counted, len(table.levels())) == (1, count // 2, 2), "the large file stays and half of it is masked"
    assert arrow <= bound
    assert grown <= bound + OVERHEAD
