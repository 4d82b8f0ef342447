"""The changes that an attempt of a commit publishes on one base snapshot, or the conflicts that prevent it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakelsm.commit.append_conflict import InterveningSnapshot, check_append, check_rows_read
from lakelsm.commit.commit_message import CommitOutcome, CommitRequest
from lakelsm.commit.conflict import Conflict, ConflictKind, check_changes
from lakelsm.commit.live_files import LiveFiles, combine_index
from lakelsm.commit.vector_conflict import check_vector_files, check_vectors, live_levels, vectors_of_live_files
from lakelsm.errors import InvalidInputError
from lakelsm.format.index.index_manifest import IndexManifestEntry
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.merge.key_order import rank_keys
from lakelsm.options import TableOptions
from lakelsm.snapshots.table_store import TableStore


@dataclass(frozen=True)
class Changes:
    """The entries of a delta, and the complete index after it (None: unchanged)."""

    delta: Sequence[ManifestEntry]
    index: Sequence[IndexManifestEntry] | None


class AttemptChanges:
    """Compares one request with the base snapshots of its attempts. Keeps the deltas that it has read."""

    def __init__(self, store: TableStore, request: CommitRequest) -> None:
        self._store = store
        self._request = request
        self._live = LiveFiles(store)

    def on(self, latest: Snapshot | None) -> Changes:
        """Return the changes on the newest snapshot. Raises CommitConflictError if they conflict with it."""
        message = self._request.message
        if self._request.replaces_partitions:
            return self._overwrite(latest)
        conflicts = self._append_conflicts(latest) if self._request.checks_base else []
        checked = self._request.kind is not CommitKind.APPEND
        live = self._live_of_message(latest) if checked else []
        conflicts += self._check(live, message.entries)
        removes = any(entry.kind == FileKind.DELETE for entry in message.entries)
        index = self._live.index(latest) if removes or message.changes_index else []
        if self._request.kind is CommitKind.COMPACT:
            conflicts += self._switched_vectors()
        if checked:
            conflicts += self._vector_conflicts(latest, live, index)
        self._raise(conflicts, latest)
        combined = combine_index(index, message.index_deletes, message.index_adds)
        if checked:
            combined = vectors_of_live_files(combined, live_levels(live, message.entries))
        return Changes(message.entries, None if combined == index else combined)

    def published_before(self, latest: Snapshot | None, attempts: int) -> CommitOutcome | None:
        """Return the outcome if the table has files of the message already: a rerun after an unknown outcome."""
        message = self._request.message
        names = message.new_file_names
        if latest is None or not names:
            return None
        since = self._since_base(latest) if self._request.checks_base else None
        if since is not None:
            for snapshot in since:
                if any(entry.file.file_name in names for entry in self._live.delta(snapshot)):
                    return CommitOutcome(snapshot, True, attempts)
            return None
        if self._request.replaces_partitions:
            live = self._live.of_partitions(latest, message.overwrite_partitions)
        else:
            live = self._live_of_message(latest)
        found = any(entry.file.file_name in names for entry in live)
        return CommitOutcome(None, True, attempts) if found else None

    def is_known(self, latest: Snapshot | None) -> bool:
        """Return whether the manifests of a snapshot name new files of the message, deleted ones included."""
        names = self._request.message.new_file_names
        return latest is not None and any(entry.file.file_name in names for entry in self._live.entries(latest))

    def _overwrite(self, latest: Snapshot | None) -> Changes:
        message = self._request.message
        wanted, as_of = message.overwrite_partitions, message.overwrite_as_of
        if as_of is not None and (latest is None or latest.id != as_of):
            newest = "none" if latest is None else latest.id
            text = f"the newest snapshot is {newest}, and the partitions to replace were chosen on snapshot {as_of}"
            self._raise([Conflict(ConflictKind.ROWS_CHANGED, text)], latest)
        for entry in message.entries:
            if wanted is not None and not wanted(entry.partition):
                raise InvalidInputError(
                    f"Table {self._store.name}: the overwrite writes {entry.file.file_name} to partition "
                    f"{self._partition_name(entry.partition)}, which it does not replace."
                )
        index = self._live.index(latest)
        live = [entry for entry in self._live.of_partitions(latest, wanted) if entry.bucket >= 0]
        delta = [replace(entry, kind=FileKind.DELETE) for entry in live] + list(message.entries)
        named = check_vector_files(delta, message.index_adds, live)
        self._raise(self._check(live, delta) + named, latest)
        kept = [entry for entry in index if wanted is not None and not wanted(entry.partition)]
        combined = combine_index(kept, message.index_deletes, message.index_adds)
        return Changes(delta, None if combined == index else combined)

    def _live_of_message(self, latest: Snapshot | None) -> list[ManifestEntry]:
        """Return the live files of the buckets that the message changes."""
        message = self._request.message
        changed: dict[bytes, set[int]] = defaultdict(set)
        for entry in message.entries:
            changed[entry.partition].add(entry.bucket)
        for index in (*message.index_adds, *message.index_deletes):
            changed[index.partition].add(index.bucket)
        return self._live.of_buckets(latest, changed)

    def _check(self, live: Sequence[ManifestEntry], delta: Sequence[ManifestEntry]) -> list[Conflict]:
        return check_changes(self._request.kind, live, delta, self._rank_keys)

    def _switched_vectors(self) -> list[Conflict]:
        """Return a conflict if deletion vectors were enabled or disabled since the compaction was planned.

        A compaction without vectors leaves rows of a key on two levels, one with vectors masks rows. Readers follow the
        newest setting.
        """
        newest = self._store.schemas.latest_id(self._store.schema.id)
        if newest == self._store.schema.id:
            return []
        was, will_be = (
            TableOptions.parse(dict(schema.options), for_reads=True).deletion_vectors_enabled
            for schema in (self._store.schema, self._store.schemas.get(newest))
        )
        text = f"schema {newest} set deletion-vectors.enabled to {str(will_be).lower()} while this compaction ran"
        return [Conflict(ConflictKind.VECTORS_SWITCHED, text)] if was != will_be else []

    def _vector_conflicts(
        self, latest: Snapshot | None, live: Sequence[ManifestEntry], index: Sequence[IndexManifestEntry]
    ) -> list[Conflict]:
        message = self._request.message
        base_index: Sequence[IndexManifestEntry] | None = index
        if latest is not None and not message.is_based_on(latest):
            base, _ = self._planned_on(latest)
            if base is None:
                base_index = None if message.base_snapshot_id else []
            elif base.index_manifest != latest.index_manifest:
                base_index = self._live.index(base)
        return check_vectors(
            message.entries,
            message.index_adds,
            message.index_deletes,
            live,
            base_index=base_index,
            index_now=index,
        )

    def _rank_keys(self, keys: Sequence[bytes]) -> Sequence[int]:
        ranks: list[int] = rank_keys(keys, [column.type for column in self._store.schema.key_fields]).tolist()
        return ranks

    def _planned_on(self, latest: Snapshot) -> tuple[Snapshot | None, str | None]:
        """Return the base snapshot if the table still has it, and a text if it was rolled back."""
        base_id = self._request.message.base_snapshot_id
        if not base_id:
            return None, None
        if base_id > latest.id:
            return None, f"snapshot {base_id}, the base of this write, was rolled back to {latest.id}"
        now = latest if base_id == latest.id else self._store.snapshots.try_get(base_id)
        if now is None or self._request.message.is_based_on(now):
            return now, None
        return None, f"snapshot {base_id}, the base of this write, was rolled back, and another commit has its id"

    def _since_base(self, latest: Snapshot) -> list[Snapshot] | None:
        """Return the snapshots after the base snapshot, the newest last.

        None if one of them has expired, or if the base snapshot was rolled back.
        """
        _, rolled_back = self._planned_on(latest)
        if rolled_back is not None:
            return None
        first = (self._request.message.base_snapshot_id or 0) + 1
        found = [self._store.snapshots.try_get(number) for number in range(first, latest.id)]
        known = [snapshot for snapshot in found if snapshot is not None]
        if len(known) < len(found):
            return None
        return [*known, latest] if latest.id >= first else known

    def _append_conflicts(self, latest: Snapshot | None) -> list[Conflict]:
        message = self._request.message
        base_id = message.base_snapshot_id
        if latest is None or message.is_based_on(latest) or not message.entries:
            return []
        unknown = ConflictKind.BASE_EXPIRED if message.rows_as_of is None else ConflictKind.ROWS_CHANGED
        base, rolled_back = self._planned_on(latest)
        if rolled_back is not None:
            return [Conflict(unknown, rolled_back)]
        snapshots = self._since_base(latest)
        if snapshots is None:
            text = f"snapshots since {base_id or 0}, the base of this write, have expired"
            return [Conflict(unknown, text)]
        since = [InterveningSnapshot(s.id, s.commit_kind, s.commit_user, tuple(self._live.delta(s))) for s in snapshots]
        conflicts = check_append(
            message.entries,
            message.index_adds,
            since,
            None if base is None and base_id else self._live.index(base),
            self._live.index(latest),
        )
        if message.rows_as_of is not None:
            unread = [snapshot for snapshot in since if snapshot.snapshot_id > message.rows_as_of]
            conflicts += check_rows_read(message.entries, unread, self._rank_keys)
        return conflicts

    def _raise(self, conflicts: Sequence[Conflict], latest: Snapshot | None) -> None:
        if conflicts:
            raise conflicts[0].error(self._store.name, latest, self._partition_name)

    def _partition_name(self, partition: bytes) -> str:
        return self._store.partition_label(partition) or "()"
