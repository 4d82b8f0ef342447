"""The partitions that an overwrite replaces, and the level of its files (option ``overwrite-upgrade``)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa

from lakelsm.arguments import checked_name, wrong_argument
from lakelsm.errors import InvalidInputError
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.row.binary_row import encode_row
from lakelsm.lsm.levels import FileRange
from lakelsm.plan.bucket_files import by_bucket
from lakelsm.schema.identifiers import alike, match
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField, python_arrow


def upgraded_for_overwrite(store: TableStore, entries: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    """Return the new files of an overwrite, on the top level in each bucket in which no two of them overlap.

    Their buckets have no other files, so they are fully compacted: `first-row` shows the rows immediately, and no later
    compaction records them as changes. If the writer itself looks rows up after the write, its compaction moves the
    files instead, as in Paimon: it also passes each row through the merge engine.
    """
    options = store.options
    if not options.overwrite_upgrade or (options.needs_lookup and not options.write_only):
        return list(entries)
    levels = [entry.file.level for entry in entries]
    for files in by_bucket(store, entries).values():
        if _are_disjoint(files):
            for file in files:
                levels[file.index] = options.num_levels - 1
    return [
        replace(entry, file=entry.file.upgraded(level)) if level > entry.file.level else entry
        for entry, level in zip(entries, levels)
    ]


def _are_disjoint(files: Sequence[FileRange]) -> bool:
    ordered = sorted(files, key=lambda file: file.min_key)
    return all(left.max_key < right.min_key for left, right in pairwise(ordered))


def checked_partition(store: TableStore, partition: object) -> dict[str, object]:
    """Return the partition columns with values of the columns' types. Raises InvalidInputError for wrong ones."""
    wanted = "a mapping of partition columns to values, such as {'dt': '2025-01-31'}"
    if partition is not None and not isinstance(partition, Mapping):
        raise wrong_argument("partition", partition, wanted)
    given = {checked_name("partition", name, wanted): value for name, value in (partition or {}).items()}
    clash = alike(given)
    if clash is not None:
        raise InvalidInputError(f"partition: {clash[0]!r} and {clash[1]!r} are one column for Spark. Name it once.")
    keys = store.schema.partition_keys
    fixed = {match(name, keys) or name: value for name, value in given.items()}
    unknown = [name for name in fixed if name not in keys]
    if unknown:
        columns = ", ".join(keys) or "none"
        names = ", ".join(map(repr, unknown))
        raise InvalidInputError(
            f"Table {store.name}: partition: {names} is not a partition column. Partition columns: {columns}."
        )
    return {name: _partition_value(store.schema.field(name), value) for name, value in fixed.items()}


def _partition_value(field: DataField, value: object) -> object:
    """Convert a value to the partition column's type: a text is parsed, any other value must have that type."""
    target = python_arrow(field.type)
    argument = f"partition value {field.name}"
    try:
        scalar = pa.scalar(value, pa.string()).cast(target) if isinstance(value, str) else pa.scalar(value, target)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise wrong_argument(argument, value, f"a value of {field.type.sql()} ({error})") from error
    if not scalar.is_valid and not field.type.nullable:
        raise wrong_argument(argument, value, f"a value of {field.type.sql()}")
    found = scalar.cast(pa.int32()).as_py() if pa.types.is_time32(target) else scalar.as_py()
    exact = isinstance(value, str) or pa.types.is_floating(target)
    if not exact and value not in (found, scalar.as_py()):
        raise wrong_argument(argument, value, f"a value of {field.type.sql()}", f"Arrow would change it to {found!r}.")
    return math.nan if isinstance(found, float) and math.isnan(found) else found  # Keys are stored with one NaN.


def replaced_partitions(
    store: TableStore, fixed: Mapping[str, object]
) -> Callable[[set[bytes]], Callable[[bytes], bool] | None]:
    """Return a function from the partitions that an overwrite wrote to a test of the partitions that it replaces.

    The function returns None if all partitions are replaced.
    """

    def choose(written: set[bytes]) -> Callable[[bytes], bool] | None:
        if fixed:
            wanted = {name: encode_row([value], [store.schema.field(name).type]) for name, value in fixed.items()}

            def matches(partition: bytes) -> bool:
                values = store.partition_values(partition)
                return all(
                    encode_row([values[name]], [store.schema.field(name).type]) == row for name, row in wanted.items()
                )

            return matches
        if store.schema.partition_keys and store.options.dynamic_partition_overwrite:
            return written.__contains__
        return None

    return choose
