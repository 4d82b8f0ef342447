"""Random changes of primary-key tables, as the oracle and as the kernel's tables represent them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.types import parse_type, to_arrow
from tests.oracle import Change, Deduplicate

#: A few values of each type, so that keys and sequences collide often.
FEW_VALUES: dict[str, list[Any]] = {
    "INT": [-5, 0, 1, 7],
    "BIGINT": [-(2**63), -1, 0, 2**63 - 1],
    "STRING": ["", "a", "a\0", "b" * 60, "é"],
    "BYTES": [b"", b"\x00", b"\x80"],
    "DOUBLE": [float("nan"), -0.0, 0.0, 1.5],
    "DECIMAL(30, 2)": [Decimal("-1.00"), Decimal("0.00"), Decimal("12345678901234567890.25")],
    "DATE": [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2024, 2, 29)],
    "TIMESTAMP(6)": [dt.datetime(1900, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)],
    "BOOLEAN": [False, True],
}


@dataclass(frozen=True)
class Shape:
    """Types of the key and of the sequence fields, and the options of the merge."""

    key: tuple[str, ...]
    sequence: tuple[str, ...] = ()
    descending: bool = False
    ignore_delete: bool = False

    @property
    def spec(self) -> MergeSpec:
        return MergeSpec(
            tuple(f"k{i}" for i in range(len(self.key))),
            sequence_columns=tuple(f"s{i}" for i in range(len(self.sequence))),
            sequence_descending=self.descending,
            ignore_delete=self.ignore_delete,
        )

    @property
    def engine(self) -> Deduplicate:
        return Deduplicate(self.descending, self.ignore_delete)

    def table(self, changes: Sequence[Change]) -> pa.Table:
        """The changes as a table of the kernel, with their ``value`` in the column ``id``."""
        columns = {}
        for i, name in enumerate(self.key):
            columns[f"k{i}"] = pa.array([change.key[i] for change in changes], to_arrow(parse_type(name)))
        for i, name in enumerate(self.sequence):
            columns[f"s{i}"] = pa.array([change.sequence[i] for change in changes], to_arrow(parse_type(name)))
        columns["_SEQUENCE_NUMBER"] = pa.array([change.number for change in changes], pa.int64())
        columns["_VALUE_KIND"] = pa.array([change.kind for change in changes], pa.int8())
        columns["id"] = pa.array([change.value for change in changes], pa.int64())
        return pa.table(columns)


def shapes() -> st.SearchStrategy[Shape]:
    types = st.sampled_from(list(FEW_VALUES))
    return st.builds(
        Shape,
        st.lists(types, min_size=1, max_size=3).map(tuple),
        st.lists(types, max_size=2).map(tuple),
        st.booleans(),
        st.booleans(),
    )


def keys(shape: Shape, nulls: bool = True) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*(st.sampled_from([*FEW_VALUES[name], *([None] if nulls else [])]) for name in shape.key))


def changes(shape: Shape, numbers: st.SearchStrategy[int], max_size: int = 40) -> st.SearchStrategy[list[Change]]:
    """Changes whose value is their index in the list; their order and numbers are random."""
    sequences = st.tuples(*(st.sampled_from([*FEW_VALUES[name], None]) for name in shape.sequence))
    one = st.tuples(keys(shape), numbers, st.integers(0, 3), sequences)
    return st.lists(one, max_size=max_size).map(
        lambda rows: [Change(key, number, kind, sequence, at) for at, (key, number, kind, sequence) in enumerate(rows)]
    )
