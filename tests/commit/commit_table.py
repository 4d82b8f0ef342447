"""A table with metadata and no data files, for tests of commits. No JVM."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lakelsm.commit.commit_message import CommitMessage, CommitOutcome
from lakelsm.commit.committer import Committer
from lakelsm.environment import Environment
from lakelsm.format.index.index_manifest import (
    DELETION_VECTORS_INDEX,
    HASH_INDEX,
    DeletionVectorRange,
    IndexFileMeta,
    IndexManifestEntry,
)
from lakelsm.format.manifest import (
    EMPTY_STATS,
    DataFileMeta,
    FileKind,
    ManifestEntry,
    decode_manifest_list,
    encode_manifest_list,
)
from lakelsm.format.paths import TablePaths
from lakelsm.format.row.binary_row import encode_row
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.snapshots.manifest_scan import read_live_entries, read_manifest_metas
from lakelsm.snapshots.schema_store import SchemaStore
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import FileIO, LocalFileIO
from lakelsm.types import AtomicType

INT = AtomicType("INT")
STRING = AtomicType("VARCHAR", length=2147483647)
_names = itertools.count()


def key(value: int | None) -> bytes:
    return encode_row([value], [INT])


def partition(value: str | None) -> bytes:
    return encode_row([value], [STRING])


def file(
    name: str = "",
    *,
    level: int = 0,
    keys: tuple[int, int] = (1, 9),
    seq: tuple[int, int] = (0, 9),
    rows: int = 10,
    schema_id: int = 0,
    **more: Any,
) -> DataFileMeta:
    return DataFileMeta(
        file_name=name or f"data-{next(_names)}.parquet",
        file_size=1000,
        row_count=rows,
        min_key=key(keys[0]),
        max_key=key(keys[1]),
        key_stats=EMPTY_STATS,
        value_stats=EMPTY_STATS,
        min_sequence_number=seq[0],
        max_sequence_number=seq[1],
        schema_id=schema_id,
        level=level,
        delete_row_count=0,
        value_stats_cols=(),
        **more,
    )


def add(meta: DataFileMeta | None = None, *, dt: str | None = "a", bucket: int = 0, total: int = 2) -> ManifestEntry:
    return ManifestEntry(FileKind.ADD, partition(dt), bucket, total, file=meta or file())


def delete(entry: ManifestEntry) -> ManifestEntry:
    return ManifestEntry(FileKind.DELETE, entry.partition, entry.bucket, entry.total_buckets, file=entry.file)


def upgrade(entry: ManifestEntry, level: int) -> list[ManifestEntry]:
    moved = ManifestEntry(
        FileKind.ADD, entry.partition, entry.bucket, entry.total_buckets, file=entry.file.upgraded(level)
    )
    return [delete(entry), moved]


def hash_index(name: str, *, dt: str | None = "a", bucket: int = 0) -> IndexManifestEntry:
    return IndexManifestEntry(FileKind.ADD, partition(dt), bucket, IndexFileMeta(HASH_INDEX, name, 8, 2))


def vector_index(name: str, *data_files: str, dt: str | None = "a", bucket: int = 0) -> IndexManifestEntry:
    """Return an index file with a vector of each data file, in this order."""
    ranges = tuple(DeletionVectorRange(file, 1 + 30 * at, 22, 3) for at, file in enumerate(data_files))
    file = IndexFileMeta(DELETION_VECTORS_INDEX, name, 1 + 30 * len(ranges), len(ranges), dv_ranges=ranges)
    return IndexManifestEntry(FileKind.ADD, partition(dt), bucket, file)


def commit_batch(
    table: CommitTable,
    identifier: int,
    user: str = "job",
    kind: CommitKind = CommitKind.APPEND,
    *,
    query: str | None = None,
    step: Callable[[str], None] = lambda name: None,
) -> CommitOutcome:
    """Commit a new file as a batch, on the newest snapshot."""
    base = table.snapshots.latest_id()
    first = 100 * (base or 0)
    entry = add(file(f"{query}-{identifier}-{base}", keys=(identifier, identifier), seq=(first, first + 9)))
    message = CommitMessage([entry], base_snapshot_id=None if kind is CommitKind.OVERWRITE else base)
    return table.committer(step).commit(kind, message, user, identifier, query_id=query)


def interfering(act: Callable[[], object], at: str = "delta-list-written", times: int = 1) -> Callable[[str], None]:
    """Return a step callback that calls ``act`` at a step, so that another commit wins."""
    left = [times]

    def step(name: str) -> None:
        if name == at and left[0] > 0:
            left[0] -= 1
            act()

    return step


class ReadingFileIO(LocalFileIO):
    """Records the names of the files that are read."""

    def __init__(self) -> None:
        self.reads: list[str] = []

    def read(self, path: str, limit: int | None = None) -> bytes:
        self.reads.append(path.rsplit("/", 1)[-1])
        return super().read(path, limit)


@dataclass
class CommitTable:
    """A table partitioned by dt with key id, in a directory."""

    root: Path
    options: dict[str, str] = field(default_factory=dict)
    file_io: FileIO = field(default_factory=LocalFileIO)
    sleeps: list[float] = field(default_factory=list)
    time: int = 1_000

    def __post_init__(self) -> None:
        self.paths = TablePaths(str(self.root))
        self.snapshots = SnapshotManager(self.file_io, self.paths)
        self.schemas = SchemaStore(self.file_io, self.paths)
        if not self.schemas.ids():
            self.schemas.create_table(self.new_schema())
        self.schema = self.schemas.latest()

    def new_schema(self) -> TableSchema:
        return create_schema(
            "dt STRING NOT NULL, id INT NOT NULL, v STRING",
            primary_key=["dt", "id"],
            partition_by=["dt"],
            options={"bucket": "2", **self.options},
            comment=None,
            now_millis=0,
        )

    def tick(self) -> int:
        self.time += 1
        return self.time

    def committer(self, step: Callable[[str], None] = lambda name: None, **more: Any) -> Committer:
        around: dict[str, Any] = {
            "clock": self.tick,
            "monotonic": lambda: self.time / 1000,
            "sleep": self.sleeps.append,
            "chance": lambda: 0.0,
        }
        return Committer(self.store, step, Environment(**{**around, **more}))

    @property
    def store(self) -> TableStore:
        options = TableOptions.parse(dict(self.schema.options))
        return TableStore(file_io=self.file_io, paths=self.paths, schema=self.schema, options=options)

    def append(self, *entries: ManifestEntry, user: str = "u", **message: Any) -> Snapshot:
        """Commit new files on the newest snapshot."""
        message.setdefault("base_snapshot_id", self.snapshots.latest_id())
        outcome = self.committer().commit(CommitKind.APPEND, CommitMessage(entries, **message), user)
        assert outcome.snapshot is not None and not outcome.already_committed
        return outcome.snapshot

    def compact(self, entries: Sequence[ManifestEntry], user: str = "c", **message: Any) -> Snapshot:
        outcome = self.committer().commit(CommitKind.COMPACT, CommitMessage(entries, **message), user)
        assert outcome.snapshot is not None
        return outcome.snapshot

    def overwrite(self, *entries: ManifestEntry, partitions: Iterable[str] | None = None, **more: Any) -> Snapshot:
        wanted = None if partitions is None else {partition(name) for name in partitions}
        replaced = None if wanted is None else lambda dt: dt in wanted
        message = CommitMessage(entries, overwrite_partitions=replaced, **more)
        outcome = self.committer().commit(CommitKind.OVERWRITE, message, "o")
        assert outcome.snapshot is not None
        return outcome.snapshot

    def rewrite(self, snapshot_id: int, **changes: Any) -> None:
        """Change fields of a snapshot, without checksums, as another engine does."""
        snapshot = replace(self.snapshots.get(snapshot_id), extra={}, **changes)
        self.file_io.write(self.paths.snapshot_file(snapshot_id), snapshot.to_json().encode())

    def forget_properties(self, *snapshot_ids: int) -> None:
        """Make snapshots (default: the newest) those of another engine, which has no properties of lakelsm."""
        for number in snapshot_ids or (self.snapshots.latest_id() or 0,):
            self.rewrite(number, properties=None)

    def copied_by_java(self, kind: CommitKind = CommitKind.COMPACT, of: int | None = None, **changes: Any) -> Snapshot:
        """Publish a snapshot like Java's compaction of manifests: a new base list of all manifests, an empty delta, and
        the properties of the newest snapshot (``of``: of an older one, as its rollback to a tag as the latest).
        """
        latest = self.snapshots.latest()
        assert latest is not None
        name = f"manifest-list-java-{next(_names)}"
        metas = read_manifest_metas(self.file_io, self.paths, latest)
        for at, listed in enumerate((metas, [])):
            self.file_io.write(self.paths.manifest(f"{name}-{at}"), encode_manifest_list(listed, compression="none"))
        copy = replace(
            latest,
            **{
                "id": latest.id + 1, "base_manifest_list": f"{name}-0", "delta_manifest_list": f"{name}-1",
                "base_manifest_list_size": None, "delta_manifest_list_size": None, "uuid": name, "extra": {},
                "commit_user": "java", "commit_identifier": BATCH_COMMIT_IDENTIFIER, "commit_kind": kind,
                "writer_version": "1.4.2", "delta_record_count": 0, "operation": None,
                "properties": latest.properties if of is None else self.snapshots.get(of).properties,
                **changes,
            },
        )  # fmt: skip
        assert self.file_io.create_if_absent(self.paths.snapshot_file(copy.id), copy.to_json().encode())
        self.file_io.write(self.paths.latest_hint, str(copy.id).encode())
        return self.snapshots.get(copy.id)

    def expire(self, *snapshot_ids: int) -> None:
        """Delete the files of snapshots."""
        for number in snapshot_ids:
            self.file_io.delete(self.paths.snapshot_file(number))

    def live(self, snapshot: Snapshot | None = None) -> list[ManifestEntry]:
        snapshot = snapshot or self.snapshots.latest()
        return [] if snapshot is None else read_live_entries(self.file_io, self.paths, snapshot)

    def live_names(self, snapshot: Snapshot | None = None) -> set[str]:
        return {f"{entry.file.file_name}@{entry.file.level}" for entry in self.live(snapshot)}

    def metadata_names(self) -> set[str]:
        """Return the names of the existing files in manifest/."""
        return set(self.file_io.list(self.paths.manifest_dir))

    def named_metadata(self) -> set[str]:
        """Return the names of the files in manifest/ that a snapshot names."""
        names: set[str] = set()
        for snapshot in self.snapshots.list():
            lists = (
                snapshot.base_manifest_list,
                snapshot.delta_manifest_list,
                snapshot.changelog_manifest_list,
                snapshot.index_manifest,
            )
            names.update(name for name in lists if name)
            names.update(meta.file_name for meta in read_manifest_metas(self.file_io, self.paths, snapshot))
            if snapshot.changelog_manifest_list:
                path = self.paths.manifest(snapshot.changelog_manifest_list)
                names.update(meta.file_name for meta in decode_manifest_list(self.file_io.read(path), path))
        return names
