"""A table with partitions in a catalog, without a JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from lakelsm import Catalog, Table


def partitioned(folder: Path, key: str = "dt STRING", **options: object) -> Table:
    """Create the table db.t with the key (dt, id), partitioned by dt."""
    columns = f"{key}, id INT, v STRING"
    options = {"bucket": 1, "write-only": True, **options}
    return Catalog(str(folder)).create_table(
        "db.t", columns, primary_key=["dt", "id"], partition_by=["dt"], options=options
    )


def fill(table: Table, *values: object, kind: pa.DataType | None = None) -> int:
    """Write one row to each of some partitions. Return the snapshot id."""
    ids = pa.array(range(len(values)), pa.int32())
    rows = pa.table({"dt": pa.array(values, kind or pa.string()), "id": ids, "v": ["x"] * len(values)})
    snapshot = table.write(rows).snapshot_id
    assert snapshot is not None
    return snapshot


def left(table: Table) -> list[object]:
    """Return the partitions that contain rows."""
    return sorted(set(table.to_arrow(columns=["dt"])["dt"].to_pylist()))
