"""Marks partitions as done: a file ``_SUCCESS`` in the directory says that the partition's rows are complete."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import CorruptTableError, InvalidInputError, UnsupportedFeatureError
from lakelsm.json_document import parse_object
from lakelsm.options.partition_options import SUCCESS_FILE
from lakelsm.plan.partition_files import chosen_partitions
from lakelsm.predicate.predicate import Predicate
from lakelsm.snapshots.table_store import TableStore

#: The name of the file, and the keys of its content, which are epoch millis. Persisted: do not change.
_NAME = "_SUCCESS"
_CREATED, _MODIFIED = "creationTime", "modificationTime"
#: The maximum size of the file in bytes.
_MAX_BYTES = 1 << 16


@dataclass(frozen=True)
class DoneTimes:
    """When a partition was first and last marked as done, in epoch millis."""

    created: int
    modified: int


def mark_partitions_done(
    store: TableStore,
    predicate: Predicate | None,
    *,
    only: Callable[[TableStore, Environment], Iterable[bytes]] | None = None,
    dry_run: bool = False,
    environment: Environment = SYSTEM,
) -> tuple[str, ...]:
    """Mark the partitions that match a condition as done; None means all. Return their labels.

    ``only`` returns partitions of which the others are left out.

    Raises InvalidInputError for a table without partitions.
    """
    if not store.schema.partition_keys:
        raise InvalidInputError(f"Table {store.name} has no partition columns, so no partition can be marked as done.")
    found = chosen_partitions(store, store.snapshots.latest(), predicate)
    check_action(store)
    if only is not None:
        wanted = set(only(store, environment))
        found = [files for files in found if files.partition in wanted]
    if not dry_run:
        mark_done(store, (files.partition for files in found), environment)
    return tuple(files.label for files in found)


def mark_done(store: TableStore, partitions: Iterable[bytes], environment: Environment = SYSTEM) -> None:
    """Write the file of each partition. An existing file keeps its creation time.

    Raises UnsupportedFeatureError if 'partition.mark-done-action' has a value that is not supported.
    """
    check_action(store)
    now = environment.clock()
    for partition in sorted(set(partitions)):
        known = done_times(store, partition)
        times = {_CREATED: now if known is None else known.created, _MODIFIED: now}
        store.file_io.write(_path(store, partition), json.dumps(times).encode("ascii"))


def check_action(store: TableStore) -> None:
    """Raise UnsupportedFeatureError if 'partition.mark-done-action' has a value that is not supported."""
    action = store.options.partition_mark_done_action
    if action != SUCCESS_FILE:
        raise UnsupportedFeatureError(
            f"Table {store.name}: option 'partition.mark-done-action' = {action!r} is not supported. Set it to "
            f"'{SUCCESS_FILE}', or use Apache Paimon."
        )


def done_times(store: TableStore, partition: bytes) -> DoneTimes | None:
    """Return the content of the file of a partition; None if it does not exist.

    Raises CorruptTableError for a damaged file.
    """
    path = _path(store, partition)
    try:
        values = parse_object(store.file_io.read(path, _MAX_BYTES), path)
    except FileNotFoundError:
        return None
    for key in (_CREATED, _MODIFIED):
        if type(values.get(key)) is not int:
            raise CorruptTableError(f"{path} has {values.get(key)!r} as {key}, which is not an integer: delete the file.")
    return DoneTimes(values[_CREATED], values[_MODIFIED])


def _path(store: TableStore, partition: bytes) -> str:
    return f"{store.paths.partition_dir(store.partition_text(partition))}/{_NAME}"
