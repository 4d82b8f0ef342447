"""Removal of the files of a table that nothing retained names (Java: `OrphanFilesClean`).

The order makes it safe while others work: files are listed first, and only then is read what snapshots, tags and
long-lived changelogs of all branches name, again until no new one has appeared. So a file that was committed since is
found to be named, and one of a commit in progress is younger than the bound. What cannot be read ends the run, and
nothing more is deleted.

Ages are judged by the store's clock: if this machine's clock is ahead, fresh files would look old. So the time of a file
written just now is read, and the earlier of the two clocks counts.
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
    NAMED_SCHEMA,
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

#: Files that are judged at a time: what snapshots name is read again for the next ones.
_MAX_LISTED = 2_000_000
#: Directories, states and manifests of one unit, and units that are handed over at a time, by core.
_DIRECTORIES, _STATES, _MANIFESTS, _UNITS = 32, 16, 4, 32
#: How often, and in how many seconds at first, a snapshot without its files is looked for again: it may be expiring.
_TRIES, _WAIT = 5, 0.2
_EXAMPLES = 10
#: Files that are deleted between two looks at the deadline.
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
    """Remove files that were last changed before ``bound`` (epoch milliseconds, see `age_bound`) and that nothing names.

    Raises InvalidInputError as `age_bound`, and CorruptTableError where a snapshot, tag, changelog, list or manifest
    is missing or cannot be read. After ``deadline`` seconds no more is looked for; what is not proven to be an orphan by
    then stays.
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
            search.drop_named(files)
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
    """Raise CorruptTableError where a snapshot file of a branch is missing: nothing names its files, and they are needed
    where it is restored. A branch whose deletion was cut off needs none.
    """
    for paths in store.branches.paths():
        try:
            SnapshotManager(store.file_io, paths).check_complete()
        except CorruptTableError:
            if store.branches.is_whole(paths.branch):
                raise


class _DeadlinePassed(Exception):
    """Ends a search. What it listed and has not proven to be orphans stays."""


def _with_removed(
    store: TableStore, result: OrphanResult, orphans: Orphans, in_time: Callable[[], bool]
) -> OrphanResult:
    """Delete orphans unless it is a dry run, then the directories of data that are empty without them."""
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
    """Directories of buckets that files went from, then those of partitions that they lie in, inner ones first."""
    depth = len(store.schema.partition_keys)
    root = store.paths.root
    level = {path for path in directories if path.removeprefix(root).count("/") == depth + 1 and "/bucket-" in path}
    for _ in range(depth + 1):
        yield from sorted(level)
        level = {path.rpartition("/")[0] for path in level}


class _Search:
    """Finds what is unnamed, by units that a runner works off."""

    def __init__(
        self, runner: Runner, store: TableStore, environment: Environment, in_time: Callable[[], bool]
    ) -> None:
        self._runner = runner
        self._store = store
        self._environment = environment
        self._in_time = in_time

    def listed(self, before: int) -> Iterator[UnreferencedFiles]:
        """The files of the table, as many at a time as memory has room for."""
        files = UnreferencedFiles()
        task = ListFiles(self._store.file_io, before)
        for batch in self._run(directories_to_list(self._store), _DIRECTORIES, task, LISTED_SCHEMA):
            files.add(batch)
            if len(files) >= _MAX_LISTED:
                yield files
                files = UnreferencedFiles()
        if len(files):
            yield files

    def drop_named(self, files: UnreferencedFiles) -> None:
        """Drop what anything retained names, as of a moment after this was called.

        A missing file is not an error if what names it no longer exists when it is read again: it has expired.
        """
        seen: set[object] = set()
        read: set[ManifestToRead] = set()
        lost: Counter[str] = Counter()
        while True:
            retained = retained_states(self._store.branches.retained())
            states = [state for state in retained if state.key not in seen]
            if not states:
                return
            manifests, missing = self._named_by(states, files)
            missing |= self._named_in(manifests - read, files)
            read.update(manifest for manifest in manifests if manifest.name not in missing)
            if not missing:
                seen.update(state.key for state in states)
                continue
            lost.update(missing)
            name, times = lost.most_common(1)[0]
            if times > _TRIES:
                raise CorruptTableError(
                    f"{self._store.paths.manifest(name)} does not exist, but a snapshot, tag or changelog of table "
                    f"{self._store.name} that is retained needs it, so nothing was removed. Where an expiry was "
                    "interrupted, run it again; where a tag was made of a snapshot that expired meanwhile, delete it "
                    "(table.tags.delete); else restore the file."
                )
            self._environment.sleep(_WAIT * 2 ** (times - 1))

    def _named_by(
        self, states: Sequence[RetainedState], files: UnreferencedFiles
    ) -> tuple[set[ManifestToRead], set[str]]:
        """Drop the metadata files that states name; return the manifests among them, and what does not exist."""
        manifests: set[ManifestToRead] = set()

        def seen() -> Iterator[pa.RecordBatch]:
            task = ReadStates(self._store.file_io, self._store.paths)
            for batch in self._run(states, _STATES, task, NAMED_SCHEMA):
                found = batch.filter(batch.column("entries").is_valid()).select(NAMED_SCHEMA.names[:-1])
                manifests.update(ManifestToRead(**row) for row in found.to_pylist())
                yield batch

        return manifests, self._drop(seen(), files)

    def _named_in(self, manifests: Iterable[ManifestToRead], files: UnreferencedFiles) -> set[str]:
        """Drop the data files that manifests name; return the names of manifests that do not exist."""
        task = ReadManifests(self._store.file_io, self._store.paths)
        return self._drop(self._run(list(manifests), _MANIFESTS, task, NAMED_SCHEMA), files)

    def _drop(self, batches: Iterable[pa.RecordBatch], files: UnreferencedFiles) -> set[str]:
        """Drop the names of batches; return those of what does not exist."""
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
        """Work items off in units of so many, a bounded number of units at a time. Raises `_DeadlinePassed`."""
        units = [items[first : first + size] for first in range(0, len(items), size)]
        step = self._runner.cores * _UNITS
        for first in range(0, len(units), step):
            if not self._in_time():
                raise _DeadlinePassed
            yield from self._runner.batches(units[first : first + step], task, schema, self._store.paths)


#: The least age in milliseconds without ``force``: a commit that is under way may take that long.
MIN_AGE = 3_600_000


def age_bound(store: TableStore, bound: int, environment: Environment, *, force: bool, dry_run: bool) -> int:
    """The time of the store, in epoch milliseconds, before which files must have been changed to go.

    ``bound`` is the same by this machine's clock. A dry run, which writes nothing, trusts that one. Raises
    InvalidInputError for a bound of less than an hour without ``force``.
    """
    now = environment.clock()
    age = max(now - bound, 0)
    if age < MIN_AGE and not force:
        raise InvalidInputError(
            f"Table {store.name}: older_than leaves {age // 60_000} minutes to commits that are under way, whose files "
            "nothing names yet: give an hour or more (a day is usual), or force=True where surely nobody writes."
        )
    return max((now if dry_run else min(now, _written_now(store, environment))) - age, 0)  # No file is of before 1970.


def _written_now(store: TableStore, environment: Environment) -> int:
    """The time that the store gives to a file that is written now."""
    directory, name = store.paths.snapshot_dir, temporary_name("clock", environment.new_uuid())
    path = f"{directory}/{name}"
    store.file_io.write(path, b"", durable=False)
    try:
        times = [entry.modified for entry in store.file_io.entries(directory) if entry.name == name]
    finally:
        delete_unneeded(store.file_io, [path])
    if not times:
        raise StorageUnavailableError(f"{path} was just written, and the store does not list it: run it again later.")
    return times[0]
