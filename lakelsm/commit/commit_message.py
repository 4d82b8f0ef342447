"""What goes into a commit and what comes out of it."""

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

#: Names given to the ``step`` callback after each durable step of a commit, in order. Steps that a commit
#: has no work for are left out; all but the last two may be repeated by a retry.
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


#: Tells whether an overwrite replaces a partition, given its stored BinaryRow (with arity).
ReplacedPartitions = Callable[[bytes], bool]


@dataclass(frozen=True)
class CommitMessage:
    """The result of a write or compaction, to be published as one snapshot.

    ``entries`` are ADD and DELETE entries of data files (an upgrade is a DELETE and an ADD of one name);
    ``changelog_entries`` are ADD entries of changelog files. ``index_adds`` replace the index file of the
    same partition, bucket and type; ``index_deletes`` drop it.

    ``base_snapshot_id`` is the snapshot that an append took its sequence numbers and buckets from (None:
    the table had no snapshot); everything committed after it is checked. Of a compaction it is the snapshot whose
    deletion vectors were applied and added to (None: none were): it loses where those of its files or of the indexes
    that it replaces have changed. Overwrites are checked against the newest snapshot and ignore it.
    ``base_fingerprint`` is that snapshot's fingerprint, as its id may be used again (None: unknown).
    ``base_total_buckets``: the number of buckets that all its files were found to have, where the writer had to
    look. ``rows_as_of``: the append was worked out from rows, as a delete is, and they are known to be unchanged up
    to this snapshot; it holds only while no other commit writes their keys.

    Vectors of files that the message deletes leave the index manifest with them: the message need not list them.

    ``overwrite_partitions`` are the partitions that an OVERWRITE replaces (None: the whole table). ``overwrite_as_of``:
    they were chosen by what is in them, so that it holds only while this is the newest snapshot.
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

    def is_based_on(self, snapshot: Snapshot | None) -> bool:
        """Whether it was planned on a snapshot, and not on one that had its id before a rollback."""
        if snapshot is None or snapshot.id != self.base_snapshot_id:
            return False
        return self.base_fingerprint in (None, snapshot.fingerprint)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it to publish."""
        return not (self.entries or self.changelog_entries or self.changes_index)

    @property
    def changes_index(self) -> bool:
        """Whether it changes the index manifest."""
        return bool(self.index_adds or self.index_deletes)

    @property
    def removes(self) -> bool:
        """Whether it deletes files or carries deletion vectors: such an append becomes an OVERWRITE."""
        return any(entry.kind == FileKind.DELETE for entry in self.entries) or any(
            entry.file.index_type == DELETION_VECTORS_INDEX
            for entry in (*self.index_adds, *self.index_deletes)
        )

    @property
    def new_file_names(self) -> frozenset[str]:
        """Names of the data files that exist because of this message (upgraded files are older)."""
        moved = {entry.file.file_name for entry in self.entries if entry.kind == FileKind.DELETE}
        added = {entry.file.file_name for entry in self.entries if entry.kind == FileKind.ADD}
        return frozenset(added - moved)


@dataclass(frozen=True)
class CommitOutcome:
    """What became of a commit that raised nothing.

    ``snapshot`` holds the message's changes; None when there was nothing to publish. ``already_committed``:
    an earlier commit of the same user and identifier had published this work (the snapshot is then that
    one, where it is still known). ``files_published`` is False when it is certain that no snapshot names
    the message's data files: the caller then deletes them. ``attempts`` counts the tries (0: none was
    needed). ``failures`` are steps after the publication that failed; they have been warned of.
    """

    snapshot: Snapshot | None
    already_committed: bool = False
    attempts: int = 0
    _: KW_ONLY
    files_published: bool = True
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CommitRequest:
    """A message with everything else of its snapshot. ``kind`` is the kind to be published.

    ``replaces_partitions``: the request is an overwrite. ``checks_base``: the request is an append, so
    everything after its base snapshot is checked.
    """

    kind: CommitKind
    message: CommitMessage
    commit_user: str
    identifier: int
    replaces_partitions: bool = False
    checks_base: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    operation: str | None = None
    statistics: str | None = None
