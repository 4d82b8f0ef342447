"""From which time on a file without a name in any snapshot may be one of a commit that is under way.

A file's age is what the store says of its time against the store's own idea of now: a clock of this machine that is ahead
would make fresh files old. So the time of a file written just now is asked, and the earlier of the two clocks counts.
"""

from __future__ import annotations

from lakelsm.errors import InvalidInputError, StorageUnavailableError
from lakelsm.maintain.deletion.file_deletion import delete_unneeded
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage.local import temporary_name
from lakelsm.surroundings import Surroundings

#: The least age in milliseconds without ``force``: a commit that is under way may take that long.
_LEAST_AGE = 3_600_000


def age_bound(store: TableStore, bound: int, surroundings: Surroundings, *, force: bool, dry_run: bool) -> int:
    """The time of the store, in epoch milliseconds, before which files must have been changed to go.

    ``bound`` is the same by this machine's clock. A dry run, which writes nothing, trusts that one. Raises
    InvalidInputError for a bound of less than an hour without ``force``.
    """
    now = surroundings.clock()
    age = max(now - bound, 0)
    if age < _LEAST_AGE and not force:
        raise InvalidInputError(
            f"Table {store.name}: older_than leaves {age // 60_000} minutes to commits that are under way, whose files "
            "nothing names yet: give an hour or more (a day is usual), or force=True where surely nobody writes."
        )
    return max((now if dry_run else min(now, _written_now(store, surroundings))) - age, 0)  # No file is of before 1970.


def _written_now(store: TableStore, surroundings: Surroundings) -> int:
    """The time that the store gives to a file that is written now."""
    directory, name = store.paths.snapshot_dir, temporary_name("clock", surroundings.new_uuid())
    path = f"{directory}/{name}"
    store.file_io.write(path, b"", durable=False)
    try:
        times = [entry.modified for entry in store.file_io.entries(directory) if entry.name == name]
    finally:
        delete_unneeded(store.file_io, [path])
    if not times:
        raise StorageUnavailableError(f"{path} was just written, and the store does not list it: run it again later.")
    return times[0]
