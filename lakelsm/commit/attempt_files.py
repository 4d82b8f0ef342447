"""The files of one attempt of a write or a compaction, and the rule that decides which of them are deleted.

A file is deleted only if it is certain that no snapshot names it:

* Before the commit nothing can be published. If the attempt fails, everything that it wrote is deleted: data, changelog
  and index files, including those of finished tasks of a failed job.
* If the commit raises an Exception, no snapshot names the files or ever will: everything is deleted. An error with
  `LakelsmError.keeps_files` and a BaseException (a signal) prove nothing: no file is deleted.
* If the commit returns, its outcome says whether a snapshot may name the files: nothing is deleted, or everything.

The commit itself applies the same rule to its metadata files, and deletes them with `delete_unpublished`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType

from lakelsm.commit.commit_message import CommitOutcome
from lakelsm.errors import LakelsmError
from lakelsm.format.file_names import AttemptNames, is_bucket_name, is_partition_name
from lakelsm.format.manifest import ManifestEntry
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import FileIO

#: Returns directories; called only if they are needed.
Directories = Callable[[], Iterable[str]]


def delete_unpublished(file_io: FileIO, paths: Iterable[str]) -> None:
    """Delete files that no snapshot names. Raises nothing.

    A file that cannot be deleted is harmless and is left to orphan removal. So the error that is being handled stays
    visible, and the other files are deleted.
    """
    for path in paths:
        with suppress(Exception):
            file_io.delete(path)


def keeps_files(error: BaseException) -> bool:
    """Return whether a snapshot or a tag may name files of a commit that failed with this error."""
    return isinstance(error, LakelsmError) and error.keeps_files


class AttemptFiles:
    """Owns the files that the tasks of one attempt write under ``names``; leaving the context deletes them by the rule.

    ``directories`` lists where the tasks may write. It is called only if files must be deleted; `record_written` narrows
    it down.
    """

    def __init__(self, store: TableStore, names: AttemptNames, directories: Directories) -> None:
        self.names = names
        self._store = store
        self._directories = directories
        self._may_be_published = False

    def __enter__(self) -> AttemptFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._may_be_published:
            with suppress(Exception):
                delete_unpublished(self._store.file_io, self._found())

    def record_written(self, entries: Sequence[ManifestEntry], *, has_indexes: bool) -> None:
        """Record where the finished tasks wrote: in the buckets of ``entries`` and, if ``has_indexes``, index files."""
        self._directories = lambda: _directories_of(self._store, entries, has_indexes)

    def commit(self, publish: Callable[[], CommitOutcome]) -> CommitOutcome:
        """Commit the written files with ``publish``, which returns and raises as `Committer.commit` does."""
        self._may_be_published = True
        try:
            outcome = publish()
        except Exception as error:
            self._may_be_published = keeps_files(error)
            raise
        self._may_be_published = outcome.files_published
        return outcome

    def _found(self) -> Iterator[str]:
        """Yield the existing files of the attempt, including those of tasks that ran twice, which no message names."""
        for directory in self._directories():
            for name in _names_in(self._store.file_io, directory):
                if self.names.owns(name):
                    yield f"{directory}/{name}"


def written_directories(store: TableStore) -> Iterator[str]:
    """Yield each directory that a write may have written to: that of index files, and all existing bucket directories.

    A directory that cannot be listed is left out; orphan removal deletes its files.
    """
    yield store.paths.index_dir
    parents = [store.paths.root]
    for key in store.schema.partition_keys:
        inside = ((parent, name) for parent in parents for name in _names_in(store.file_io, parent))
        parents = [f"{parent}/{name}" for parent, name in inside if is_partition_name(name, key)]
    for parent in parents:
        for name in _names_in(store.file_io, parent):
            if is_bucket_name(name):
                yield f"{parent}/{name}"


def _names_in(file_io: FileIO, directory: str) -> list[str]:
    try:
        return file_io.list(directory)
    except (OSError, LakelsmError):
        return []


def _directories_of(store: TableStore, entries: Sequence[ManifestEntry], has_indexes: bool) -> Iterator[str]:
    if has_indexes:
        yield store.paths.index_dir
    for partition, bucket in dict.fromkeys((entry.partition, entry.bucket) for entry in entries):
        yield store.paths.bucket_dir(store.partition_text(partition), bucket)
