"""The merge of one key of a table with a value column ``v`` and an INT column ``g``, which may be a sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lakelsm.merge.kernel import merge_rows
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import create_schema
from lakelsm.types import to_arrow

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3
#: Makes ``g`` the sequence of a group with ``v``.
GROUP = {"merge-engine": "partial-update", "fields.g.sequence-group": "v"}


def merged_row(column: str, options: Mapping[str, str], *rows: tuple[Any, ...]) -> dict[str, Any] | None:
    """Merge rows (kind, value) or (kind, value, g), written one after the other; ``column`` is the type of ``v``.

    Without ``g`` a row has its own number there. Returns None if the key has no row.
    """
    schema = create_schema(f"id INT, v {column}, g INT", ["id"], [], {"merge-engine": "aggregation", **options})
    count = len(rows)
    table = pa.table(
        {
            "_SEQUENCE_NUMBER": pa.array(range(count), pa.int64()),
            "_VALUE_KIND": pa.array([row[0] for row in rows], pa.int8()),
            "id": pa.array([1] * count, pa.int32()),
            "v": pa.array([row[1] for row in rows], to_arrow(schema.field("v").type)),
            "g": pa.array([row[2] if len(row) > 2 else at for at, row in enumerate(rows)], pa.int32()),
        }
    )
    spec = MergeSpec.of(schema, TableOptions.parse(schema.options))
    found: list[dict[str, Any]] = merge_rows(table, order_keys([table.column("id")]), spec).to_pylist()
    return found[0] if found else None


def kind_and_values(column: str, options: Mapping[str, str], *rows: tuple[Any, ...]) -> tuple[int, Any, Any]:
    """The kind and the values of ``v`` and ``g`` in `merged_row`."""
    row = merged_row(column, options, *rows)
    assert row is not None
    return row["_VALUE_KIND"], row["v"], row["g"]


def merged(column: str, options: Mapping[str, str], *rows: tuple[Any, ...]) -> Any:
    """The value of ``v`` in `merged_row`."""
    return kind_and_values(column, options, *rows)[1]


def function(name: str, **settings: str) -> dict[str, str]:
    """The options of an aggregate function of ``v``."""
    named = {f"fields.v.{key.replace('_', '-')}": value for key, value in settings.items()}
    return {"fields.v.aggregate-function": name, **named}
