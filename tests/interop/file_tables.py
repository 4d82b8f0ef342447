"""Cases written by the engine's tasks, without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.snapshot import CommitKind
from lakelsm.schema.system_columns import VALUE_KIND
from tests.interop.engine_cases import EngineCase
from tests.oracle import KINDS
from tests.read.file_engine import FileTable


def write(table: FileTable, case: EngineCase, rows: pa.Table, kinds: Sequence[str] | None) -> None:
    """Commit rows of the case as a writer does: with their kinds, without the rows that the table drops."""
    own = case.options.get("rowkind.field")
    texts = rows.column(own).to_pylist() if own else kinds or ["+I"] * len(rows)
    codes = pa.array([KINDS[text] for text in texts], pa.int8())
    batch = rows.append_column(VALUE_KIND, codes)
    if table.store.options.ignore_delete:
        batch = batch.filter(pc.equal(pc.bit_wise_and(codes, 1), 0))
    table._commit(CommitKind.APPEND, batch, 0, None, {})
