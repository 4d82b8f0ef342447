"""The task that reads data files without a merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakelsm.format.data_file.key_value_file import conform
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.schema.system_columns import FILE_NAME, POSITION

#: Memory of a task that reads or merges the rows of a read, in bytes.
TASK_MEMORY = 256 << 20


@dataclass(frozen=True)
class StoredRows:
    """The task that reads files one after the other; ``schema`` is the schema of the stored columns that it yields.

    Columns in ``sources`` have the values of the column named there.
    """

    reader: RunReader
    schema: pa.Schema
    sources: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, files: Sequence[RunFile]) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the files, each with its `FILE_NAME` and `POSITION`."""
        for file in files:
            (run,) = self.reader.open_runs(MergeUnit(((file,),)), positions=True)
            for rows in run:
                stored = conform(rows, self.schema, self.sources)
                stored = stored.append_column(FILE_NAME, pa.repeat(file.name, len(rows)))
                yield from stored.append_column(POSITION, rows.column(POSITION)).combine_chunks().to_batches()
