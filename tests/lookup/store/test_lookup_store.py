"""The layout of a store knows its files by a mark."""

from __future__ import annotations

from dataclasses import replace

from lakelsm.lookup.store.lookup_store import StoreLayout
from lakelsm.types import AtomicType, DataField

K = DataField(0, "k", AtomicType("INT", nullable=False))
V = DataField(1, "v", AtomicType("BIGINT"))
LAYOUT = StoreLayout((K,), (V,), rows_of="data-1.parquet")


def test_files_of_other_rows_columns_or_types_have_another_mark() -> None:
    others = [
        replace(LAYOUT, rows_of="data-2.parquet"),
        replace(LAYOUT, values=()),
        replace(LAYOUT, keys=(V,), values=(K,)),
        replace(LAYOUT, values=(replace(V, name="w"),)),
        replace(LAYOUT, values=(replace(V, type=AtomicType("INT")),)),
    ]
    assert len({layout.mark for layout in [LAYOUT, *others]}) == 6
    assert replace(LAYOUT).mark == LAYOUT.mark and len(LAYOUT.mark) == 16
