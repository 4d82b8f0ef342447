"""The tasks of an incremental read: they merge new files, or compare two states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.format.data_file.key_value_file import conform
from lakelsm.merge.changelog import merge_difference
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit
from lakelsm.merge.run_reader import RunReader
from lakelsm.merge.streaming import key_ranges, merge_runs
from lakelsm.plan.changelog_plan import DifferenceUnit
from lakelsm.read.merged_rows import EVERY_FILE, MergedRows
from lakelsm.schema.identifiers import match
from lakelsm.schema.system_columns import FILE_NUMBER, SEQUENCE_NUMBER, SNAPSHOT_ID
from lakelsm.schema.table_schema import TableSchema

#: The columns that a read with positions adds after the table's columns.
POSITION_COLUMNS = (SNAPSHOT_ID, SEQUENCE_NUMBER)


def check_added_columns(schema: TableSchema, kind_column: str, positions: bool) -> None:
    """Raise InvalidInputError if the table has a column of a name that a read of its changes adds."""
    other = match(kind_column, (*schema.field_names, *POSITION_COLUMNS))
    if other is not None:
        raise InvalidInputError(f"kind_column: {other!r} is the name of another column. Choose another name.")
    added = match(SNAPSHOT_ID, schema.field_names) if positions else None
    if added is not None:
        raise InvalidInputError(
            f"positions=True adds a column {added!r}, which the table has. Rename the column, or leave positions out."
        )


@dataclass(frozen=True)
class MergedChanges:
    """The task that merges new data files, or those of one state, and keeps retractions.

    ``schema`` is the Arrow schema of the rows that it yields.
    """

    reader: RunReader
    spec: MergeSpec
    schema: pa.Schema

    def __call__(self, units: Sequence[MergeUnit]) -> Iterator[pa.RecordBatch]:
        """Yield one row for each key."""
        for unit in units:
            if self.spec.lookup:  # The levels decide which rows are merged.
                yield from MergedRows(self.reader, self.spec, self.schema, EVERY_FILE, retractions=True)([unit])
                continue
            for rows in merge_runs(self.reader.open_runs(unit), self.spec, drop_deletes=False):
                yield from conform(rows, self.schema).combine_chunks().to_batches()


@dataclass(frozen=True)
class Differences:
    """The task that compares two states; ``schema`` is the Arrow schema of the rows that it yields."""

    reader: RunReader
    spec: MergeSpec
    schema: pa.Schema

    def __call__(self, units: Sequence[DifferenceUnit]) -> Iterator[pa.RecordBatch]:
        """Yield -D, -U, +U and +I rows of the keys whose rows differ."""
        for compared in units:
            before, after = np.array(compared.before), np.array(compared.after)
            unit, columns = compared.unit, self.reader.columns
            for rows, keys in key_ranges(self.reader.open_runs(unit, positions=True), self.spec.key_columns):
                files = rows.column(FILE_NUMBER).to_numpy()
                sides = before[files], after[files]
                changes = merge_difference(rows, keys, unit.levels[files], sides, self.spec, columns)
                yield from conform(changes, self.schema).combine_chunks().to_batches()
