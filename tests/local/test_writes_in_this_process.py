"""Writes of a table in this process: the public calls, without a JVM."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError, StorageError

DAYS = [datetime.date(2020, 1, day) for day in (1, 2)]


def frame(*rows: tuple[int, datetime.date, str]) -> pa.Table:
    kinds = (pa.int32(), pa.date32(), pa.string())
    return pa.Table.from_arrays([pa.array(c, kind) for c, kind in zip(zip(*rows), kinds)], names=["k", "day", "v"])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    columns, key = "k INT, day DATE, v STRING", ["k", "day"]
    options = {"bucket": "2", "changelog-producer": "input"}
    made = Catalog(str(tmp_path)).create_table("d.t", columns, primary_key=key, partition_by=["day"], options=options)
    made.write(frame((1, DAYS[0], "a"), (2, DAYS[0], "b"), (1, DAYS[1], "c")))
    return made


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def test_an_overwrite_replaces_the_named_partition(table: Table) -> None:
    result = table.overwrite(frame((9, DAYS[0], "x")).drop_columns(["day"]), {"day": "2020-01-01"})
    assert result.rows == 1 and rows_of(table) == [(1, DAYS[1], "c"), (9, DAYS[0], "x")]
    with pytest.raises(InvalidInputError, match="not in the overwritten partition, where column 'day' is '2020-01-01'"):
        table.overwrite(frame((9, DAYS[1], "x")), {"day": "2020-01-01"})
    table.overwrite(frame((9, DAYS[0], "x")).slice(0, 0), {"day": DAYS[0]})
    assert rows_of(table) == [(1, DAYS[1], "c")]


@pytest.mark.parametrize("dynamic", ["true", "false"])
def test_a_partly_named_partition_is_replaced_whole_and_other_rows_are_refused(
    tmp_path: Path, dynamic: str
) -> None:
    columns, key = "k INT, dt STRING, hh INT", ["k", "dt", "hh"]
    options = {"bucket": "1", "dynamic-partition-overwrite": dynamic}
    made = Catalog(str(tmp_path)).create_table("d.p", columns, primary_key=key, partition_by=key[1:], options=options)

    def rows(*given: tuple[int, str, int]) -> pa.Table:
        keys, days, hours = zip(*given)
        return pa.table({"k": pa.array(keys, pa.int32()), "dt": days, "hh": pa.array(hours, pa.int32())})

    made.write(rows((1, "x", 1), (1, "x", 2), (1, "y", 1)))
    made.overwrite(rows((9, "x", 3)), {"dt": "x"})
    assert rows_of(made) == [(1, "y", 1), (9, "x", 3)]
    with pytest.raises(InvalidInputError, match="a row is not in the overwritten partition, where column 'dt' is 'x'"):
        made.overwrite(rows((5, "x", 3), (5, "y", 1)), {"dt": "x"})
    made.overwrite(rows((7, "y", 1)), {"hh": 1})
    assert rows_of(made) == [(7, "y", 1), (9, "x", 3)]


def test_an_overwrite_replaces_the_partitions_of_its_rows_or_all(table: Table) -> None:
    table.overwrite(frame((7, DAYS[1], "y")))
    assert rows_of(table) == [(1, DAYS[0], "a"), (2, DAYS[0], "b"), (7, DAYS[1], "y")]


def test_a_batch_is_written_once(table: Table) -> None:
    rows = frame((5, DAYS[0], "e"))
    first = table.write(rows, commit_user="job", batch_id=3)
    again = table.write(rows, commit_user="job", batch_id=3)
    assert (first.already_committed, again.already_committed) == (False, True)
    assert again.snapshot_id == first.snapshot_id


def test_row_kinds_of_a_pandas_frame_reach_the_changelog(table: Table) -> None:
    changes = pd.DataFrame({"K": pd.array([1, 8], "int32"), "day": DAYS[:1] * 2, "v": ["a", "h"], "op": ["-D", "+I"]})
    table.write(changes, row_kind="OP")
    assert [row[0] for row in rows_of(table)] == [1, 2, 8]
    seen = table.changelog_reader(start=1).read_all().to_pylist()
    assert sorted((row["rowkind"], row["k"]) for row in seen) == [("+I", 8), ("-D", 1)]


def test_a_write_is_followed_by_a_compaction_in_this_process(tmp_path: Path) -> None:
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}
    table = Catalog(str(tmp_path)).create_table("d.t", "k INT, v STRING", primary_key=["k"], options=options)
    one = pa.table({"k": pa.array([1], pa.int32()), "v": ["a"]})
    results = [table.write(one) for _ in range(3)]
    assert any(result.compaction is not None and result.compaction.files_rewritten for result in results)


def test_options_apply_to_one_write(table: Table) -> None:
    many = pa.table({"k": pa.array(range(100_000), pa.int32()), "day": DAYS[:1] * 100_000, "v": ["x"] * 100_000})
    with pytest.raises(StorageError, match="write-buffer-spill"):
        table.write(many, options={"write-buffer-size": "1 mb", "write-buffer-spill.max-disk-size": "10 kb"})
    assert len(rows_of(table)) == 3
    assert table.write(many, options={"write-buffer-size": "1 mb"}).rows == 100_000


KILLED = """
import os, signal, sys
import numpy as np, pyarrow as pa
from lakelsm import Table

def batches():
    for start in range(0, 10**9, 50_000):
        if start == 1_000_000:
            os.kill(os.getpid(), signal.SIGKILL)
        yield pa.record_batch({"k": np.arange(start, start + 50_000), "v": np.arange(start, start + 50_000)})

schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
rows = pa.RecordBatchReader.from_batches(schema, batches())
Table.for_path(sys.argv[1]).write(rows, options={"write-buffer-size": "1 mb"})
"""


def test_a_process_killed_during_a_spill_leaves_no_files(tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table("d.t", "k BIGINT, v BIGINT", primary_key=["k"], options={"bucket": "1"})
    root, scratch = tmp_path / "d.db" / "t", tmp_path / "scratch"
    scratch.mkdir()
    before = sorted(path for path in root.rglob("*") if path.is_file())
    environment = {**os.environ, "TMPDIR": str(scratch)}
    killed = subprocess.run([sys.executable, "-c", KILLED, str(root)], env=environment, check=False, timeout=600)
    assert killed.returncode == -signal.SIGKILL
    assert list(scratch.iterdir()) == [] and sorted(path for path in root.rglob("*") if path.is_file()) == before
    assert int(table.count()) == 0


def test_no_write_in_this_process_loads_pyspark(tmp_path: Path) -> None:
    program = (
        "import sys, pyarrow as pa; from lakelsm import Catalog; "
        "table = Catalog(sys.argv[1]).create_table('d.t', 'k BIGINT', primary_key=['k'], options={'bucket': '1'}); "
        "table.write(pa.table({'k': [1, 2]})); table.overwrite(pa.table({'k': [1, 2, 3]})); "
        "table.delete(keys=pa.table({'k': [1]})); table.delete('k = 2', engine='local'); "
        "assert table.to_arrow().to_pydict() == {'k': [3]}; assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=600)
