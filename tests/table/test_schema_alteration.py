"""A new schema of an open table is derived from the newest one, checked, then published."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError
from lakelsm.schema.table_schema import TableSchema
from lakelsm.schema_changes import AddColumn
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.schema_alteration import alter_schema


def test_changes_are_derived_again_after_a_concurrent_schema_and_no_changes_publish_nothing(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_table("d.t", "id INT", primary_key="id", options={"bucket": "1"})
    store = TableStore.open(str(tmp_path / "d.db" / "t"))
    seen: list[int] = []

    def changes_of(newest: TableSchema) -> list[AddColumn]:
        seen.append(newest.id)
        if newest.id == 0:
            catalog.alter_table("d.t", AddColumn("w", "INT"))
        return [] if "x" in newest.field_names else [AddColumn("x", f"DECIMAL({len(newest.fields)}, 0)")]

    assert alter_schema(store, changes_of).field("x").type.sql() == "DECIMAL(2, 0)" and seen == [0, 1]
    assert alter_schema(store, changes_of).id == 2 and store.schemas.ids() == [0, 1, 2]

    def refuse(after: TableSchema) -> None:
        raise InvalidInputError(f"schema {after.id}")

    with pytest.raises(InvalidInputError, match="schema 3"):
        alter_schema(store, lambda newest: [AddColumn("y", "INT")], refuse)
    assert store.schemas.ids() == [0, 1, 2]
