"""The maintenance history of a table: operations, their users, times and outcomes.

A run that publishes a snapshot has its record in it (`lakelsm.snapshots.maintenance_record`). Another run writes a small
file in ``service/``, which no engine deletes. The newest hundred files are kept (docs/format.md 18.4).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from operator import attrgetter

from lakelsm.environment import SYSTEM, Environment, login_and_host
from lakelsm.epoch_time import FIRST_MILLIS, LAST_MILLIS
from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.format.file_names import is_maintenance_record
from lakelsm.maintain.deletion.file_deletion import delete_unneeded
from lakelsm.operation_log import current_line
from lakelsm.snapshots.inheritance import inherited_property
from lakelsm.snapshots.maintenance_record import (
    DONE,
    FAILED,
    MAINTENANCE_PROPERTY,
    PARTIAL,
    MaintenanceRecord,
    records_of,
)
from lakelsm.snapshots.table_store import TableStore

#: The maximum number of record files, and the maximum size of one in bytes.
_MAX_FILES, _MAX_BYTES = 100, 4096


@dataclass
class RunTotals:
    """The totals of files that a run has deleted or written so far. ``complete`` is False if a deadline ended the run.

    ``is_recorded`` is False if there was nothing to do, for example because a tag existed already.
    """

    files: int = 0
    bytes: int = 0
    complete: bool = True
    is_recorded: bool = True


@contextmanager
def recorded(
    store: TableStore, operation: str, *, dry_run: bool = False, environment: Environment = SYSTEM
) -> Iterator[RunTotals]:
    """Record the block as a run of ``operation``, which publishes no snapshot itself.

    The block fills in the totals. A dry run or a refused call leaves no record, because it changes nothing. Best effort:
    a failure to write the record is ignored.
    """
    totals, started = RunTotals(), environment.clock()
    outcome: str | None = None  # An interrupt leaves no record.
    try:
        yield totals
        outcome = DONE if totals.complete else PARTIAL
        if not totals.is_recorded:
            current_line().set_nothing_done()
    except Exception as error:
        if not isinstance(error, (InvalidInputError, UnsupportedFeatureError)):
            outcome = f"{FAILED}: {type(error).__name__}"
        raise
    finally:
        if outcome is not None and totals.is_recorded and not dry_run:
            with suppress(Exception):
                record = maintenance_record(
                    operation, login_and_host()[0], started, environment, files=totals.files, bytes=totals.bytes
                )
                _write(store, replace(record, outcome=outcome))


def record_failure(
    store: TableStore, operation: str, error: str, started: int, environment: Environment = SYSTEM
) -> None:
    """Record that a background run, which began at ``started``, failed with an error of the class ``error``.

    Best effort: a failure to write the record is ignored.
    """
    with suppress(Exception):
        record = maintenance_record(operation, login_and_host()[0], started, environment)
        _write(store, replace(record, outcome=f"{FAILED}: {error}"))


def maintenance_record(
    operation: str, user: str, started: int, environment: Environment = SYSTEM, *, files: int = 0, bytes: int = 0
) -> MaintenanceRecord:
    """Return the record of a run that began at ``started`` (epoch millis) and will publish a snapshot as ``user``.

    Pass it to the commit: ``Committer.commit(..., properties=record.as_property())``.
    """
    return MaintenanceRecord(
        run=environment.new_uuid()[:8],
        operation=operation,
        user=user,
        host=login_and_host()[1],
        started=started,
        seconds=(environment.clock() - started) / 1000,
        files=files,
        bytes=bytes,
    )


def maintenance_runs(store: TableStore, limit: int) -> list[MaintenanceRecord]:
    """Return the records of the newest runs, newest first, without damaged ones and those with an impossible time."""
    records = records_of(inherited_property(store.snapshots.latest(), store.snapshots.try_get, MAINTENANCE_PROPERTY))
    for name in sorted(_files(store), reverse=True)[:limit]:
        with suppress(OSError, LakelsmError):  # The file may have been deleted since.
            records += records_of(store.file_io.read(f"{store.paths.service_dir}/{name}", _MAX_BYTES))
    known = [record for record in records if FIRST_MILLIS <= record.started <= LAST_MILLIS]
    return sorted(known, key=attrgetter("started"), reverse=True)[:limit]


def _write(store: TableStore, record: MaintenanceRecord) -> None:
    """Write a record, and delete the oldest files beyond a hundred."""
    path = store.paths.maintenance_record(record.started, record.run)
    store.file_io.create_if_absent(path, json.dumps([record.to_list()]).encode())
    delete_unneeded(
        store.file_io, [f"{store.paths.service_dir}/{name}" for name in sorted(_files(store))[:-_MAX_FILES]]
    )


def _files(store: TableStore) -> list[str]:
    return [name for name in store.file_io.list(store.paths.service_dir) if is_maintenance_record(name)]
