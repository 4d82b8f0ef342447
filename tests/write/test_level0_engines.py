"""Level-0 files of engines that combine rows: a batch is merged as a whole, for any division into parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelsm.environment import SYSTEM
from lakelsm.errors import InvalidInputError
from lakelsm.format.data_file.key_value_file import FileLayout
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.manifest import decode_entries
from lakelsm.format.paths import TablePaths
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.options import TableOptions
from lakelsm.schema.system_columns import BUCKET, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import create_schema
from lakelsm.storage import LocalFileIO
from lakelsm.write.level0_task import Level0Job


def job(root: Path, function: str) -> Level0Job:
    options = {"merge-engine": "aggregation", "bucket": "1", "fields.v.aggregate-function": function}
    schema = create_schema("id INT NOT NULL, v BIGINT", ["id"], [], options)
    parsed = TableOptions.parse(schema.options)
    return Level0Job(
        file_io=LocalFileIO(),
        paths=TablePaths(str(root)),
        layout=FileLayout.of(schema, parsed),
        spec=MergeSpec.of(schema, parsed),
        first_sequence=100,
        total_buckets=1,
        partition_default_name="__DEFAULT_PARTITION__",
        partition_legacy_name=True,
        batch_bytes=1 << 20,
        names=AttemptNames.new(SYSTEM.new_uuid),
    )


def batch(ids: list[int], kinds: list[int] | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "id": pa.array(ids, pa.int32()),
            "v": pa.array([1] * len(ids), pa.int64()),
            BUCKET: pa.array([0] * len(ids), pa.int32()),
            VALUE_KIND: pa.array(kinds or [0] * len(ids), pa.int8()),
            SEQUENCE_NUMBER: pa.array(np.arange(len(ids))),
        }
    )


def written(root: Path, made: Level0Job, *batches: pa.RecordBatch) -> list[dict[str, int]]:
    (message,) = made(iter(batches))
    entries = decode_entries(message.column(0)[0].as_py())
    files = [pq.ParquetFile(root / "bucket-0" / entry.file.file_name).read() for entry in entries]
    rows: list[dict[str, int]] = pa.concat_tables(files).select(["id", "v", SEQUENCE_NUMBER]).to_pylist()
    return rows


@pytest.mark.parametrize("limit", [1, 60, 1 << 20])
def test_a_key_whose_rows_are_in_several_batches_is_summed_once(tmp_path: Path, limit: int) -> None:
    made = replace(job(tmp_path, "sum"), batch_bytes=limit)
    rows = written(tmp_path, made, batch([1, 1, 2]), batch([2, 2]), batch([2, 3]))
    assert [(row["id"], row["v"], row[SEQUENCE_NUMBER]) for row in rows] == [(1, 2, 100), (2, 4, 101), (3, 1, 102)]


def test_a_retraction_that_the_function_cannot_take_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="column 'v'"):
        written(tmp_path, job(tmp_path, "max"), batch([1, 2]), batch([3], [3]))
    assert not list(tmp_path.rglob("*.parquet"))
