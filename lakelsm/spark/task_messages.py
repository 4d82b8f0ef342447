"""The messages of Spark tasks, collected on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from pyspark.sql import DataFrame

from lakelsm.commit.task_messages import TaskMessages
from lakelsm.errors import LakelsmError
from lakelsm.format.index.index_manifest import decode_index_manifest
from lakelsm.format.manifest import decode_entries
from lakelsm.format.paths import AttemptNames, escape_path_name
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.task_errors import translated
from lakelsm.spark.tasks import collect_to_end

#: Lists directories, when they are asked for.
Directories = Callable[[], Iterable[str]]



def collect_messages(frame: DataFrame, store: TableStore, names: AttemptNames, directories: Directories) -> TaskMessages:
    """Run the tasks of ``frame`` (rows of `MESSAGE_SCHEMA`) and join their messages.

    What lakelsm knows of a task's failure is raised as a LakelsmError. When the job fails, the files of the tasks that
    were done are deleted too: those in the ``directories`` that have the ``names`` of the job. Their messages are lost,
    so nothing can have published them.
    """
    try:
        with translated(store.paths.root):
            rows = collect_to_end(frame, names.mark)
    except BaseException:
        _delete_all(store, names, directories)
        raise
    joined = TaskMessages()
    for entries, index_entries, changelog_entries in rows:
        decoded = decode_index_manifest(bytes(index_entries), "a task's message")
        joined.add(TaskMessages(decode_entries(bytes(entries)), decoded, decode_entries(bytes(changelog_entries))))
    return joined


def _delete_all(store: TableStore, names: AttemptNames, directories: Directories) -> None:
    """Delete the files of a failed job. Whatever cannot be is left to orphan removal: it must not hide the failure."""
    with suppress(OSError, LakelsmError):
        for directory in directories():
            for name in store.file_io.list(directory):
                if names.owns(name):
                    with suppress(OSError, LakelsmError):
                        store.file_io.delete(f"{directory}/{name}")


def written_directories(store: TableStore) -> Iterator[str]:
    """Every directory that a write may have put files in: of index files, and of all buckets on disk."""
    yield store.paths.index_dir
    parents = [store.paths.root]
    for key in store.schema.partition_keys:
        start = f"{escape_path_name(key)}="
        inside = ((parent, name) for parent in parents for name in store.file_io.list(parent))
        parents = [f"{parent}/{name}" for parent, name in inside if name.startswith(start)]
    for parent in parents:
        for name in store.file_io.list(parent):
            if name.startswith("bucket-"):
                yield f"{parent}/{name}"
