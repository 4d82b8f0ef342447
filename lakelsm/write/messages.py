"""What a Spark task tells the driver: manifest entries and index entries, in the format's own encoding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from lakelsm.commit.table_store import TableStore
from lakelsm.errors import LakelsmError
from lakelsm.format.index_manifest import IndexManifestEntry, decode_index_manifest, encode_index_manifest
from lakelsm.format.manifest import ManifestEntry, decode_entries, encode_entries
from lakelsm.format.paths import AttemptNames, escape_path_name
from lakelsm.spark.task_errors import translated
from lakelsm.spark.tasks import collect_to_end

#: Lists directories, when they are asked for.
Directories = Callable[[], Iterable[str]]

#: Spark schema of the batches that carry messages.
MESSAGE_SCHEMA = "entries binary, index_entries binary, changelog_entries binary"


@dataclass
class TaskMessages:
    """Files that a task wrote, not yet visible to anybody."""

    entries: list[ManifestEntry] = field(default_factory=list)
    index_entries: list[IndexManifestEntry] = field(default_factory=list)
    changelog_entries: list[ManifestEntry] = field(default_factory=list)

    def add(self, other: TaskMessages) -> None:
        """Append another task's messages."""
        self.entries.extend(other.entries)
        self.index_entries.extend(other.index_entries)
        self.changelog_entries.extend(other.changelog_entries)

    def to_batch(self) -> pa.RecordBatch:
        """One row of `MESSAGE_SCHEMA`."""
        row = {
            "entries": encode_entries(self.entries),
            "index_entries": encode_index_manifest(self.index_entries),
            "changelog_entries": encode_entries(self.changelog_entries),
        }
        return pa.RecordBatch.from_arrays([pa.array([value], pa.binary()) for value in row.values()], list(row))


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
