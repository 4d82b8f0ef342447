"""A table with several snapshots, written without a JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from lakelsm import Catalog, Table

SCHEMA = pa.schema([("id", pa.int32()), ("v", pa.string())])


def rows(*pairs: tuple[int, str]) -> pa.Table:
    return pa.table([list(column) for column in zip(*pairs)], schema=SCHEMA)


def versioned_table(warehouse: Path, snapshots: int, **options: str) -> Table:
    """Create the table db.t. Its snapshot N has the keys 1 to N, with the values 'v1' to 'vN'."""
    made = Catalog(str(warehouse)).create_table(
        "db.t", "id INT NOT NULL, v STRING", primary_key=["id"], options={"bucket": "1", "write-only": "true", **options}
    )
    for number in range(1, snapshots + 1):
        made.write(rows((number, f"v{number}")))
    return made


def values(table: Table, **of: object) -> list[str]:
    """Return the values of column v in the order of the key."""
    shown: list[str] = table.to_arrow(ordered=True, **of)["v"].to_pylist()  # type: ignore[arg-type]
    return shown
