"""A table for tests of branches, in a catalog, without a JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelsm import Catalog, Table
from lakelsm.format.snapshot import Tag


def new_table(folder: Path, columns: str = "id INT, v STRING", **options: object) -> Table:
    """Create the table db.t with key id and one bucket."""
    return Catalog(str(folder)).create_table("db.t", columns, primary_key=["id"], options={"bucket": 1, **options})


def put(table: Table, rows: dict[int, str | None]) -> int:
    """Upsert values by id. Return the snapshot id."""
    ids, values = pa.array(list(rows), pa.int32()), pa.array(list(rows.values()), pa.string())
    snapshot = table.write(pa.table({"id": ids, "v": values})).snapshot_id
    assert snapshot is not None
    return snapshot


def rows(table: Table, **at: Any) -> dict[int, str]:
    """Return the values by id."""
    found = table.to_arrow(columns=["id", "v"], ordered=True, **at).to_pydict()
    return dict(zip(found["id"], found["v"]))


def tag(table: Table, name: str) -> None:
    """Tag the newest snapshot by writing the tag file."""
    store = table._store()
    snapshot = store.snapshots.latest()
    assert snapshot is not None
    store.file_io.write(store.paths.tag(name), Tag(snapshot).to_json().encode())
