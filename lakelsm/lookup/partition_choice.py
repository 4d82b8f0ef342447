"""Which partitions lookups see (`scan.partitions`): named ones, or the greatest that the table has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError, told_of
from lakelsm.format.row.binary_row import decode_rows, encode_row
from lakelsm.format.snapshot import Snapshot
from lakelsm.merge.key_order import order_keys, stable_order
from lakelsm.plan.overwritten_partitions import checked_partition
from lakelsm.predicate.predicate import Compare, Constant, IsNull, Predicate, all_of, any_of
from lakelsm.schema.identifiers import match
from lakelsm.snapshots.manifest_scan import read_live_counts
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import has_nanoseconds

_MAX_PT = "max_pt()"
_GREATEST = {_MAX_PT: 1, "max_two_pt()": 2}
_WANTED = "write 'dt=2026-01-01;dt=2026-01-02', 'max_pt()', 'max_two_pt()' or 'year=max_pt(),month=max_pt()'"


@dataclass(frozen=True)
class PartitionChoice:
    """What an option asks for: the partitions ``named``, or (None) the ``greatest``, that many of those that differ in
    their first ``levels`` columns, with all that lies below them.
    """

    named: tuple[bytes, ...] | None
    _: KW_ONLY
    greatest: int = 1
    levels: int = 0

    @staticmethod
    def of(store: TableStore) -> PartitionChoice | None:
        """The choice of a table, None where it has none. Raises InvalidInputError for one that it cannot have."""
        text = store.options.scan_partitions
        if text is None:
            return None
        option = f"option 'scan.partitions' cannot be '{text}'"
        keys = store.schema.partition_keys
        if not keys:
            raise InvalidInputError(f"{option}: table {store.name} has no partitions; leave it out.")
        greatest = _GREATEST.get(text.strip().lower())
        if greatest is not None:
            return PartitionChoice(None, greatest=greatest, levels=len(keys))
        with told_of(option):
            specs = [_values(part, keys) for part in text.strip().rstrip(";").split(";")]
            if any(value.lower() in _GREATEST for spec in specs for value in spec.values()):
                return PartitionChoice(None, levels=_levels(specs, keys))
            return PartitionChoice(tuple(dict.fromkeys(_named(store, spec) for spec in specs)))

    @property
    def moves(self) -> bool:
        """Whether other partitions may be chosen later."""
        return self.named is None

    def one_at_most(self, store: TableStore) -> bool:
        """Whether never more than one partition is chosen."""
        is_one = self.greatest == 1 and self.levels == len(store.schema.partition_keys)
        return is_one if self.named is None else len(self.named) == 1

    def partitions(self, store: TableStore, snapshot: Snapshot | None) -> tuple[bytes, ...]:
        """The partitions that are chosen of a snapshot (None: an empty table), greatest first."""
        if self.named is not None:
            return self.named
        codes: dict[bytes, None] = {}
        for batch, rows in () if snapshot is None else read_live_counts(store.file_io, store.paths, snapshot):
            codes.update((batch.partitions[code], None) for code in np.unique(batch.partition_codes[rows]).tolist())
        found = list(codes)
        if not found:
            return ()
        columns = decode_rows(found, store.partition_types)
        leading = order_keys(columns[: self.levels])
        kept = np.isin(leading, np.unique(leading)[-self.greatest :])
        descending = stable_order(order_keys(columns))[::-1]
        return tuple(found[at] for at in descending.tolist() if kept[at])


def partition_condition(store: TableStore, partitions: Sequence[bytes]) -> Predicate:
    """The condition that the rows of some partitions meet, and no others."""
    if not partitions:
        return Constant(False)
    names = store.schema.partition_keys
    for field in map(store.schema.field, names):
        if has_nanoseconds(field.type) or field.type.root in ("FLOAT", "DOUBLE"):
            raise UnsupportedFeatureError(
                f"Table {store.name}: lookups in chosen partitions of {field.type.sql()} ('{field.name}') are not built; "
                "leave 'scan.partitions' out."
            )
    rows = store.comparable_partitions(partitions)
    return any_of(
        all_of(IsNull(name) if value is None else Compare(name, "=", value) for name, value in zip(names, row))
        for row in rows
    )


def _values(text: str, keys: Sequence[str]) -> dict[str, str]:
    """The texts of partition columns in 'a=x,b=y'."""
    values: dict[str, str] = {}
    for part in text.split(","):
        found = re.fullmatch(r"\s*([^=]*[^=\s])\s*=(.*)", part, re.DOTALL)
        if found is None:
            raise InvalidInputError(f"'{part.strip()}' is no partition: {_WANTED}.")
        name = match(found[1], keys)
        if name is None:
            raise InvalidInputError(f"'{found[1]}' is no partition column; the table has {', '.join(keys)}.")
        if name in values:
            raise InvalidInputError(f"'{text.strip()}' has '{name}' twice; name it once.")
        values[name] = found[2].strip()
    return values


def _named(store: TableStore, values: dict[str, str]) -> bytes:
    keys = store.schema.partition_keys
    missing = [name for name in keys if name not in values]
    if missing:
        raise InvalidInputError(f"it must name all partition columns, and lacks {', '.join(missing)}.")
    found = checked_partition(store, values)
    return encode_row([found[name] for name in keys], store.partition_types)


def _levels(specs: Sequence[dict[str, str]], keys: Sequence[str]) -> int:
    """How many leading columns are to be the greatest."""
    values = specs[0]
    if len(specs) > 1 or any(value.lower() != _MAX_PT for value in values.values()):
        raise InvalidInputError(f"'{_MAX_PT}' stands for each column that is named, once: {_WANTED}.")
    if set(values) != set(keys[: len(values)]):
        raise InvalidInputError(f"it must name the first partition columns, in {', '.join(keys)}.")
    return len(values)
