"""Prepares the snapshot of an attempt: writes its metadata files. Nothing is visible yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

from lakelsm.commit.attempt_changes import Changes
from lakelsm.commit.commit_message import CommitRequest
from lakelsm.commit.manifest_merge import MergePolicy, merge_manifests
from lakelsm.commit.manifest_writer import ManifestFiles
from lakelsm.environment import Environment
from lakelsm.format.file_names import SCHEMA_PREFIX
from lakelsm.format.manifest import FileKind, ManifestEntry, ManifestFileMeta
from lakelsm.format.snapshot import BASE_PROPERTY, Snapshot
from lakelsm.snapshots.inheritance import inherited_statistics, latest_watermark, with_total_buckets
from lakelsm.snapshots.maintenance_record import with_maintenance_records
from lakelsm.snapshots.manifest_scan import read_manifest, read_manifest_metas
from lakelsm.snapshots.sequence_base import NO_SEQUENCE, table_max_sequence, with_max_sequence
from lakelsm.snapshots.stream_progress import StreamProgress, stream_progress, with_stream_progress
from lakelsm.snapshots.table_store import TableStore
from lakelsm.version import VERSION

#: The number of older schemas whose checksums a snapshot keeps.
_MAX_SCHEMAS = 100


@dataclass(frozen=True)
class WrittenList:
    """Manifests, and the list that names them."""

    metas: Sequence[ManifestFileMeta]
    name: str
    size: int

    @property
    def manifests(self) -> Sequence[str]:
        """The names of its manifests."""
        return [meta.file_name for meta in self.metas]


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt of a commit: the snapshot to publish, its base snapshot, and the metadata files that were written.

    ``base_list`` is the result of merging the manifests ``merged`` of the base snapshot.
    """

    base: Snapshot | None
    snapshot: Snapshot
    merged: Sequence[str]
    base_list: WrittenList
    delta: WrittenList
    changelog: WrittenList | None
    keeps_delta: bool

    @property
    def used(self) -> set[str | None]:
        """The names of the written files that the snapshot needs."""
        return {self.snapshot.index_manifest, self.base_list.name, self.delta.name, *self.delta.manifests, *self.reusable}

    @property
    def reusable(self) -> set[str | None]:
        """The names of the written files that the next attempt can use again."""
        written = [each for each in (self.delta if self.keeps_delta else None, self.changelog) if each is not None]
        return {*self.base_list.manifests, *(name for each in written for name in (each.name, *each.manifests))}


@dataclass(frozen=True)
class NextSnapshot:
    """Prepares the attempts of one request. ``files`` writes their metadata files."""

    store: TableStore
    request: CommitRequest
    files: ManifestFiles
    _: KW_ONLY
    environment: Environment
    step: Callable[[str], None]

    def prepare(
        self, latest: Snapshot | None, changes: Changes, properties: Mapping[str, str], before: Attempt | None
    ) -> Attempt:
        """Write the metadata files of ``changes`` on the newest snapshot; reuse files of the attempt ``before``."""
        merged, metas = self._merged(latest, before)
        base_list = WrittenList(metas, *self.files.write_list(metas))
        self.step("base-list-written")
        changelog = None if before is None else before.changelog
        known = before.delta if before is not None and before.keeps_delta else None
        delta = known or self._write_lists(changes.delta, "delta")
        if changelog is None and self.request.message.changelog_entries:
            changelog = self._write_lists(self.request.message.changelog_entries, "changelog")
        index = None if latest is None else latest.index_manifest
        if changes.index is not None:
            index = self.files.write_index(changes.index) if changes.index else None
            self.step("index-manifest-written")
        properties = self._properties(latest, changes.delta, properties)
        snapshot = self._snapshot(latest, changes.delta, (base_list, delta, changelog), index, properties)
        return Attempt(
            base=latest,
            snapshot=self._sealed(snapshot, latest),
            merged=merged,
            base_list=base_list,
            delta=delta,
            changelog=changelog,
            keeps_delta=not self.request.replaces_partitions,
        )

    def _merged(
        self, latest: Snapshot | None, before: Attempt | None
    ) -> tuple[Sequence[str], Sequence[ManifestFileMeta]]:
        """Return the names of a snapshot's manifests, and the merged manifests. A commit merges only once."""
        if latest is None:
            return [], []
        store = self.store
        current = read_manifest_metas(store.file_io, store.paths, latest)
        names = [meta.file_name for meta in current]
        if before is not None and before.base is not None:
            count = len(before.merged)
            return names, [*before.base_list.metas, *current[count:]] if names[:count] == before.merged else current
        merged = merge_manifests(
            current,
            MergePolicy.of(store.options),
            lambda meta: read_manifest(store.file_io, store.paths, meta),
            self.files.write_manifests,
            store.partition_types,
        )
        if merged != current:
            self.step("manifests-merged")
        return names, merged

    def _write_lists(self, entries: Sequence[ManifestEntry], what: str) -> WrittenList:
        metas = self.files.write_manifests(entries)
        self.step(f"{what}-manifests-written")
        name, size = self.files.write_list(metas)
        self.step(f"{what}-list-written")
        return WrittenList(metas, name, size)

    def _sealed(self, snapshot: Snapshot, latest: Snapshot | None) -> Snapshot:
        """Return the snapshot with its checksums. The index manifest and the schema may be those of ``latest``."""
        checksums = {name: self.files.checksum(name) for name in snapshot.metadata_files}
        schema = self.store.schema
        if latest is not None:
            index = snapshot.index_manifest
            if index is not None and checksums[index] is None:
                checksums[index] = latest.checksum_of(index)
            checksums.update({name: latest.checksum_of(name) for name in latest.schema_files[-_MAX_SCHEMAS:]})
        if schema.file_checksum is not None:
            checksums[f"{SCHEMA_PREFIX}{schema.id}"] = schema.file_checksum
        return snapshot.signed().sealed(checksums)

    def _snapshot(
        self,
        latest: Snapshot | None,
        delta: Sequence[ManifestEntry],
        lists: tuple[WrittenList, WrittenList, WrittenList | None],
        index_manifest: str | None,
        properties: Mapping[str, str],
    ) -> Snapshot:
        store, request = self.store, self.request
        base, written, changelog = lists
        changes = request.message.changelog_entries
        rows = sum(e.file.row_count if e.kind == FileKind.ADD else -e.file.row_count for e in delta)
        # The newest schema is not read: a change during this write is equivalent to one after it. Ids never decrease.
        schema_id = max(store.schema.id, 0 if latest is None else latest.schema_id)
        return Snapshot(
            id=1 if latest is None else latest.id + 1,
            schema_id=schema_id,
            base_manifest_list=base.name,
            base_manifest_list_size=base.size,
            delta_manifest_list=written.name,
            delta_manifest_list_size=written.size,
            changelog_manifest_list=None if changelog is None else changelog.name,
            changelog_manifest_list_size=None if changelog is None else changelog.size,
            index_manifest=index_manifest,
            commit_user=request.commit_user,
            commit_identifier=request.identifier,
            commit_kind=request.kind,
            # Time travel bisects by time, so it must not decrease if this clock is behind another writer's.
            time_millis=max(self.environment.clock(), 0 if latest is None else latest.time_millis),
            total_record_count=rows + (0 if latest is None else latest.total_record_count),
            delta_record_count=rows,
            changelog_record_count=sum(e.file.row_count for e in changes) if changes else None,
            uuid=self.environment.new_uuid(),
            writer_version=f"lakelsm-{VERSION}",
            watermark=latest_watermark(request.message.watermark, None if latest is None else latest.watermark),
            statistics=request.statistics or inherited_statistics(store.file_io, store.paths, latest, schema_id),
            properties=properties or None,
            next_row_id=(latest.next_row_id or 0) if latest else 0,
            operation=request.operation,
        )

    def _properties(
        self, latest: Snapshot | None, delta: Sequence[ManifestEntry], replayed: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the properties of the request and of its replay check, and those for the next commits."""
        store, message = self.store, self.request.message
        found = message.base_total_buckets if message.is_based_on(latest) else None
        properties = with_total_buckets({**self.request.properties, **replayed}, latest, found, delta)
        number = 1
        if latest is not None:
            number = latest.id + 1
            properties[BASE_PROPERTY] = latest.fingerprint
        properties = with_maintenance_records(properties, number, latest, store.snapshots.try_get)
        known = stream_progress(latest, store.snapshots.try_get)
        query, user = self.request.query_id, self.request.commit_user
        batch = None if query is None else StreamProgress(query, self.request.identifier)
        properties = with_stream_progress(properties, known, user, batch)
        previous = NO_SEQUENCE if latest is None else table_max_sequence(store.file_io, store.paths, latest)
        return with_max_sequence(properties, previous, delta)
