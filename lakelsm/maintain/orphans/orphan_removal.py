"""Removal of orphan files, which no retained state of a table names (Java: `OrphanFilesClean`).

The order makes it safe beside writers. Files are listed first. Then the names in snapshots, tags and long-lived
changelogs of all branches are read, again until no new state has appeared. So a file that was committed since the listing
is found to be named, and a file of a commit in progress is younger than the bound. If a state cannot be read, the run
ends and deletes nothing more.

The store's clock decides the age of a file. If this machine's clock were ahead, fresh files would look old. Therefore a
file is written and its time is read, and the earlier of the two clocks counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from lakelsm.environment import SYSTEM, Environment
from lakelsm.epoch_time import bound_time
from lakelsm.errors import CorruptTableError, InvalidInputError, StorageUnavailableError
from lakelsm.maintain.deletion.file_deletion import DeletedFiles, delete_empty_directories, delete_unneeded
from lakelsm.maintain.orphans.listing_task import LISTED_SCHEMA, ListFiles, directories_to_list
from lakelsm.maintain.orphans.reference_tasks import (
    REFERENCE_SCHEMA,
    ManifestToRead,
    ReadManifests,
    ReadStates,
    RetainedState,
    retained_states,
)
from lakelsm.maintain.orphans.unreferenced_files import Orphans, UnreferencedFiles
from lakelsm.results import OrphanResult
from lakelsm.runner.runner import Runner, Task
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage.file_io import temporary_name

Item = TypeVar("Item")

#: Files in memory at a time. Retained states are read again for each such group of files.
_MAX_LISTED = 2_000_000
#: Directories, states and manifests in one unit, and the units that are given to the runner at a time, for each core.
_DIRECTORIES, _STATES, _MANIFESTS, _UNITS = 32, 16, 4, 32
#: Attempts to find a missing file of a state that may be expiring, and the first wait in seconds.
_TRIES, _WAIT = 5, 0.2
#: Maximum number of paths in the result.
_EXAMPLES = 10
#: Files that are deleted between two checks of the deadline.
_MAX_DELETED = 10_000


def remove_orphans(
    runner: Runner,
    store: TableStore,
    bound: int,
    *,
    dry_run: bool = False,
    force: bool = False,
    deadline: float | None = None,
    environment: Environment = SYSTEM,
) -> OrphanResult:
    """Remove the files that no retained state names and that were last changed before ``bound`` (epoch milliseconds).

    Raises InvalidInputError as `age_bound` does, and CorruptTableError if a snapshot, tag, changelog, list or manifest is
    missing or cannot be read. The search stops ``deadline`` seconds after the start; files that are not proven to be
    orphans by then stay.
    """
    started = environment.monotonic()
    before = age_bound(store, bound, environment, force=force, dry_run=dry_run)
    result = OrphanResult(table=store.name, dry_run=dry_run, older_than=bound_time(bound))

    def in_time() -> bool:
        return deadline is None or environment.monotonic() - started <= deadline

    _check_complete(store)
    search = _Search(runner, store, environment, in_time)
    try:
        for files in search.listed(before):
            listed = len(files)
            search.drop_referenced(files)
            orphans = files.orphans()
            result = replace(
                result, files_listed=result.files_listed + listed,
                files_too_young=result.files_too_young + len(files) - len(orphans),
            )
            if len(orphans):
                result = _with_removed(store, result, orphans, in_time)
    except _DeadlinePassed:
        result = replace(result, complete=False)
    return replace(result, seconds=environment.monotonic() - started)


def _check_complete(store: TableStore) -> None:
    """Raise CorruptTableError if a snapshot file of a branch is missing: its files would look like orphans, but they are
    needed when it is restored. A branch whose deletion was interrupted is left out.
    """
    for paths in store.branches.paths():
        try:
            SnapshotManager(store.file_io, paths).check_complete()
        except CorruptTableError:
            if store.branches.is_whole(paths.branch):
                raise


class _DeadlinePassed(Exception):
    """Ends a search. Listed files that are not proven to be orphans stay."""


def _with_removed(
    store: TableStore, result: OrphanResult, orphans: Orphans, in_time: Callable[[], bool]
) -> OrphanResult:
    """Delete orphans, unless it is a dry run, and then the directories of data that are empty without them."""
    if not result.dry_run:
        paths, deleted, tried = orphans.paths(), DeletedFiles(), 0
        while in_time() and (batch := list(islice(paths, _MAX_DELETED))):
            deleted += delete_unneeded(store.file_io, batch)
            tried += len(batch)
        if tried < len(orphans):
            result, orphans = replace(result, complete=False), orphans.first(tried)
        directories = delete_empty_directories(store.file_io, _emptied(store, orphans.directories))
        result = replace(
            result, directories=result.directories + directories, failures=result.failures + deleted.failures
        )
    below = len(store.paths.root) + 1
    examples = (*result.examples, *(path[below:] for path in islice(orphans.paths(), _EXAMPLES)))[:_EXAMPLES]
    return replace(
        result,
        files=result.files + len(orphans),
        kinds=dict(Counter(result.kinds) + Counter(orphans.kinds)),
        bytes=result.bytes + orphans.bytes,
        examples=examples,
    )


def _emptied(store: TableStore, directories: Iterable[str]) -> Iterator[str]:
    """Yield the directories of buckets that lost files, then those of their partitions, the innermost first."""
    depth = len(store.schema.partition_keys)
    root = store.paths.root
    level = {path for path in directories if path.removeprefix(root).count("/") == depth + 1 and "/bucket-" in path}
    for _ in range(depth + 1):
        yield from sorted(level)
        level = {path.rpartition("/")[0] for path in level}


class _Search:
    """Finds unreferenced files with tasks of a runner."""

    def __init__(
        self, runner: Runner, store: TableStore, environment: Environment, in_time: Callable[[], bool]
    ) -> None:
        self._runner = runner
        self._store = store
        self._environment = environment
        self._in_time = in_time

    def listed(self, before: int) -> Iterator[UnreferencedFiles]:
        """Yield the files of the table, a bounded number at a time."""
        files = UnreferencedFiles()
        task = ListFiles(self._store.file_io, before)
        for batch in self._run(directories_to_list(self._store), _DIRECTORIES, task, LISTED_SCHEMA):
            files.add(batch)
            if len(files) >= _MAX_LISTED:
                yield files
                files = UnreferencedFiles()
        if len(files):
            yield files

    def drop_referenced(self, files: UnreferencedFiles) -> None:
        """Drop the files that the retained states name, including states that appear during the call.

        A missing file is not an error if the state that names it is deleted when it is read again: it has expired.
        """
        seen: set[object] = set()
        read: set[ManifestToRead] = set()
        lost: Counter[str] = Counter()
        while True:
            retained = retained_states(self._store.branches.retained())
            states = [state for state in retained if state.key not in seen]
            if not states:
                return
            manifests, missing = self._drop_named_by_states(states, files)
            missing |= self._drop_named_in_manifests(manifests - read, files)
            read.update(manifest for manifest in manifests if manifest.name not in missing)
            if not missing:
                seen.update(state.key for state in states)
                continue
            lost.update(missing)
            name, times = lost.most_common(1)[0]
            if times > _TRIES:
                raise CorruptTableError(
                    f"Table {self._store.name}: {self._store.paths.manifest(name)} does not exist, but a retained "
                    "snapshot, tag or changelog needs it. Nothing was removed: run an interrupted expiry again, delete a "
                    "tag of an expired snapshot (table.tags.delete), or restore the file."
                )
            self._environment.sleep(_WAIT * 2 ** (times - 1))

    def _drop_named_by_states(
        self, states: Sequence[RetainedState], files: UnreferencedFiles
    ) -> tuple[set[ManifestToRead], set[str]]:
        """Drop the metadata files that states name. Return the manifests among them, and the names of missing files."""
        manifests: set[ManifestToRead] = set()

        def seen() -> Iterator[pa.RecordBatch]:
            task = ReadStates(self._store.file_io, self._store.paths)
            for batch in self._run(states, _STATES, task, REFERENCE_SCHEMA):
                found = batch.filter(batch.column("entries").is_valid()).select(REFERENCE_SCHEMA.names[:-1])
                manifests.update(ManifestToRead(**row) for row in found.to_pylist())
                yield batch

        return manifests, self._drop(seen(), files)

    def _drop_named_in_manifests(self, manifests: Iterable[ManifestToRead], files: UnreferencedFiles) -> set[str]:
        """Drop the data files that manifests name. Return the names of missing manifests."""
        task = ReadManifests(self._store.file_io, self._store.paths)
        return self._drop(self._run(list(manifests), _MANIFESTS, task, REFERENCE_SCHEMA), files)

    def _drop(self, batches: Iterable[pa.RecordBatch], files: UnreferencedFiles) -> set[str]:
        """Drop the names of batches. Return the names of missing files."""
        missing: set[str] = set()

        def names() -> Iterator[pa.Array]:
            for batch in batches:
                missing.update(batch.column("name").filter(batch.column("missing")).to_pylist())
                yield batch.column("name")

        files.drop(names())
        return missing

    def _run(
        self, items: Sequence[Item], size: int, task: Task[Sequence[Item]], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Run a task for units of ``size`` items, a bounded number of units at a time. Raises `_DeadlinePassed`."""
        units = [items[first : first + size] for first in range(0, len(items), size)]
        step = self._runner.cores * _UNITS
        for first in range(0, len(units), step):
            if not self._in_time():
                raise _DeadlinePassed
            yield from self._runner.batches(units[first : first + step], task, schema, self._store.paths)


#: The minimum age in milliseconds without ``force``: a commit in progress may take that long.
MIN_AGE = 3_600_000


def age_bound(store: TableStore, bound: int, environment: Environment, *, force: bool, dry_run: bool) -> int:
    """Return the time of the store, in epoch milliseconds, before which a file must have been changed to be deleted.

    ``bound`` is that time by this machine's clock. A dry run writes no file and trusts this clock. Raises
    InvalidInputError for a bound of less than an hour ago without ``force``.
    """
    now = environment.clock()
    age = max(now - bound, 0)
    if age < MIN_AGE and not force:
        raise InvalidInputError(
            f"Table {store.name}: older_than leaves {age // 60_000} minutes to commits in progress, which have not named "
            "their files yet. Use an hour or more (a day is usual), or force=True if no other process writes."
        )
    return max((now if dry_run else min(now, _written_now(store, environment))) - age, 0)  # No file is older than 1970.


def _written_now(store: TableStore, environment: Environment) -> int:
    """Return the time, in epoch milliseconds, that the store gives to a file that is written now."""
    directory, name = store.paths.snapshot_dir, temporary_name("clock", environment.new_uuid())
    path = f"{directory}/{name}"
    store.file_io.write(path, b"", durable=False)
    try:
        times = [entry.modified for entry in store.file_io.entries(directory) if entry.name == name]
    finally:
        delete_unneeded(store.file_io, [path])
    if not times:
        raise StorageUnavailableError(f"{path} was just written, but the store does not list it: run it again later.")
    return times[0]
