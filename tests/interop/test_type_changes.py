"""Every permitted change of a column's type: Java and lakelsm read the old values of one table alike."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tests.engines import TableEngine
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon
from tests.type_changes import BEFORE, rows_before, schema_changes

_COUNT = 2000


def test_java_and_lakelsm_cast_old_values_alike(
    ours: LakelsmTables, local: TableEngine, java: JavaPaimon, path: Path
) -> None:
    options = {"bucket": "1", "write-only": "true", "merge-engine": "partial-update"}
    ours.create(path, BEFORE, ["k"], options=options)
    local.opened(path).write(rows_before(_COUNT))
    local.catalog(path.parents[1]).alter_table("db.t", *schema_changes())
    assert java.read(path) == ours.read(path), "one file, scanned"
    table = local.opened(path)
    table.write(pa.table({"k": pa.array(range(0, _COUNT, 50), pa.int32())}))
    expected = java.read(path)
    assert ours.read(path) == expected, "merged"
    ours.compact(path)
    assert java.read(path) == expected, "as lakelsm compacted them"
    assert ours.read(path) == expected
