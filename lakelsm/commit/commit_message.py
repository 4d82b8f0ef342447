"""The input and the outcome of a commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from lakelsm.format.index.index_manifest import (
    DELETION_VECTORS_INDEX,
    IndexManifestEntry,
)
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.results import Failure

#: The names that the ``step`` callback gets after the durable steps of a commit, in order. A commit leaves out steps that
#: it does not need; a retry may repeat all but the last two.
COMMIT_STEPS = (
    "manifests-merged",
    "base-list-written",
    "delta-manifests-written",
    "delta-list-written",
    "changelog-manifests-written",
    "changelog-list-written",
    "index-manifest-written",
    "snapshot-published",
    "hint-written",
)


#: Returns whether an overwrite replaces a partition, given its stored BinaryRow (with arity).
ReplacedPartitions = Callable[[bytes], bool]


@dataclass(frozen=True)
class CommitMessage:
    """The result of a write or compaction, to be published as one snapshot.

    ``entries`` are ADD and DELETE entries of data files (an upgrade is a DELETE and an ADD of one name);
    ``changelog_entries`` are ADD entries of changelog files. ``index_adds`` replace the index file of the
    same partition, bucket and type; ``index_deletes`` drop it.

    ``base_snapshot_id`` of an append is the snapshot that its sequence numbers and buckets are based on (None: the table
    had no snapshot); all later commits are checked. Of a compaction it is the snapshot whose deletion vectors it applied
    and added to (None: it used no vectors); the commit conflicts if vectors of its files, or in index files that it
    replaces, have changed. Overwrites are checked against the newest snapshot and ignore it.
    ``base_fingerprint`` is the fingerprint of that snapshot, whose id may be used again (None: unknown).
    ``base_total_buckets`` is the number of buckets of all its files, if the writer had to read them.
    ``rows_as_of``: the append is a delete or update, and the rows that it read are unchanged up to this snapshot. It
    conflicts with a later commit that writes their keys.

    The index manifest drops the vectors of files that the message deletes; the message need not list them.

    ``overwrite_partitions`` are the partitions that an OVERWRITE replaces (None: the whole table). ``overwrite_as_of``:
    the partitions were chosen by their content in this snapshot, so the commit conflicts if it is not the newest one.

    ``watermark`` is that of the rows, in epoch milliseconds; the snapshot has it if its base has no later one.
    """

    entries: Sequence[ManifestEntry] = ()
    _: KW_ONLY
    changelog_entries: Sequence[ManifestEntry] = ()
    index_adds: Sequence[IndexManifestEntry] = ()
    index_deletes: Sequence[IndexManifestEntry] = ()
    base_snapshot_id: int | None = None
    base_fingerprint: str | None = None
    base_total_buckets: int | None = None
    rows_as_of: int | None = None
    overwrite_partitions: ReplacedPartitions | None = None
    overwrite_as_of: int | None = None
    watermark: int | None = None

    def is_based_on(self, snapshot: Snapshot | None) -> bool:
        """Return whether the message is based on this very snapshot, and not on one that had its id before a rollback."""
        if snapshot is None or snapshot.id != self.base_snapshot_id:
            return False
        return self.base_fingerprint in (None, snapshot.fingerprint)

    @property
    def is_empty(self) -> bool:
        """Whether the message has nothing to publish."""
        return not (self.entries or self.changelog_entries or self.changes_index)

    @property
    def changes_index(self) -> bool:
        """Whether the message changes the index manifest."""
        return bool(self.index_adds or self.index_deletes)

    @property
    def removes(self) -> bool:
        """Whether the message deletes files or has deletion vectors: such an append becomes an OVERWRITE."""
        return any(entry.kind == FileKind.DELETE for entry in self.entries) or any(
            entry.file.index_type == DELETION_VECTORS_INDEX
            for entry in (*self.index_adds, *self.index_deletes)
        )

    @property
    def new_file_names(self) -> frozenset[str]:
        """The names of the data files that were written for this message, without upgraded files."""
        moved = {entry.file.file_name for entry in self.entries if entry.kind == FileKind.DELETE}
        added = {entry.file.file_name for entry in self.entries if entry.kind == FileKind.ADD}
        return frozenset(added - moved)


@dataclass(frozen=True)
class CommitOutcome:
    """The outcome of a commit that succeeded, or had nothing to do.

    ``snapshot`` has the message's changes; None if there was nothing to publish. ``already_committed``: an earlier commit
    of the same user and identifier published this work; ``snapshot`` is that commit's, or None if it is unknown.
    ``files_published`` is False if it is certain that no snapshot names the message's data files; the caller then
    deletes them. ``attempts`` is the number of attempts (0: none was needed). ``failures`` are the steps after the
    publication that failed; they have been reported as warnings.
    """

    snapshot: Snapshot | None
    already_committed: bool = False
    attempts: int = 0
    _: KW_ONLY
    files_published: bool = True
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CommitRequest:
    """A message, and the other values of its snapshot. ``kind`` is the commit kind of the snapshot.

    ``replaces_partitions``: the request is an overwrite. ``checks_base``: the request is an append, so all commits after
    its base snapshot are checked. ``query_id`` is the streaming query of a batch; None for other batches.
    """

    kind: CommitKind
    message: CommitMessage
    commit_user: str
    identifier: int
    query_id: str | None = None
    replaces_partitions: bool = False
    checks_base: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    operation: str | None = None
    statistics: str | None = None
