"""One optimistic commit: prepare on the newest snapshot, publish, and begin anew after a lost race."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakelsm.commit.attempt_changes import AttemptChanges
from lakelsm.commit.commit_environment import CommitEnvironment
from lakelsm.commit.commit_message import CommitOutcome, CommitRequest
from lakelsm.commit.manifest_merge import merge_manifests
from lakelsm.commit.manifest_writer import ManifestFiles
from lakelsm.commit.replay import ReplayCheck
from lakelsm.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptTableError,
    LakelsmError,
    StorageError,
    UnsupportedFeatureError,
)
from lakelsm.failures import after_commit_step, note_commit
from lakelsm.format.file_names import SCHEMA_PREFIX
from lakelsm.format.manifest import FileKind, ManifestEntry, ManifestFileMeta
from lakelsm.format.snapshot import BASE_PROPERTY, Snapshot
from lakelsm.results import Failure
from lakelsm.results.failure import error_text
from lakelsm.snapshots.branch_store import BranchStore
from lakelsm.snapshots.consumer_store import ConsumerStore
from lakelsm.snapshots.inheritance import inherited_statistics, with_total_buckets
from lakelsm.snapshots.json_file import checked_bytes, publish
from lakelsm.snapshots.maintenance_record import with_maintenance_records
from lakelsm.snapshots.manifest_scan import read_manifest, read_manifest_metas
from lakelsm.snapshots.schema_store import SchemaStore
from lakelsm.snapshots.sequence_base import NO_SEQUENCE, table_max_sequence, with_max_sequence
from lakelsm.snapshots.snapshot_manager import MAX_SNAPSHOT_BYTES, SnapshotManager

#: Seconds before it is looked again whether a published snapshot is in the history, where the store failed.
_LOOK_WAITS = (0.1, 0.2)
_NO_HINT = "Nothing to do: readers find the snapshot without the hint, and the next commit writes it."
#: Of so many older schemas a snapshot keeps the checksums.
_MOST_SCHEMAS = 100


@dataclass(frozen=True)
class _Lists:
    """Manifests and the list that names them."""

    metas: Sequence[ManifestFileMeta]
    name: str
    size: int


class CommitRun:
    """Carries one request through its attempts. Not reusable."""

    def __init__(self, environment: CommitEnvironment, request: CommitRequest) -> None:
        self._env = environment
        self._request = request
        self._snapshots = SnapshotManager(environment.file_io, environment.paths)
        self._partition_types = [column.type for column in environment.schema.partition_fields]
        self._attempt = AttemptChanges(environment.file_io, environment.paths, environment.schema, request)
        self._replay = ReplayCheck(environment.file_io, environment.paths, request)
        self._files = ManifestFiles(
            environment.file_io,
            environment.paths,
            partition_types=self._partition_types,
            compression=environment.compression,
            target_size=environment.merging.target_size,
            uuid=environment.surroundings.new_uuid(),
        )
        self._attempts = 0
        self._unlinked: Snapshot | None = None
        self._may_be_visible = False
        self._committed: Snapshot | None = None
        self._sent_again = False
        self._merged: tuple[list[str], list[ManifestFileMeta]] | None = None
        self._delta: _Lists | None = None
        self._changelog: _Lists | None = None

    def execute(self) -> CommitOutcome:
        """Publish the request. Raises as Committer.commit; leaves no useless file where that is safe."""
        try:
            return self._replay.before() or self._attempt_until_published()
        except BaseException as error:
            if self._committed is not None:  # No Exception gets here after it.
                note_commit(error, self._env.paths.name, [self._committed.id])
            elif not self._may_be_visible:
                self._files.delete_except()
            elif isinstance(error, Exception) and not (isinstance(error, LakelsmError) and error.keeps_files):
                raise CommitOutcomeUnknownError(
                    f"Table {self._env.paths.name}: the commit failed where its snapshot may be visible ({error}). No "
                    "file was deleted. Rerun with the same commit user and batch id: it does nothing if it is visible."
                ) from error
            raise

    def _attempt_until_published(self) -> CommitOutcome:
        started = self._env.surroundings.monotonic()
        known = self._request.message.base_snapshot_id
        while True:
            latest = self._snapshots.latest(known)
            known = known if latest is None else latest.id
            if latest is not None and not self._snapshots.is_linked(latest):
                self._await_removal(latest, started)
                continue
            if latest is not None and self._is_below_a_gap(latest):
                self._await_rollback(latest, started)
                continue
            try:
                earlier = self._replay.since(latest, self._attempts)
                earlier = earlier or self._attempt.published_before(latest, self._attempts)
                if earlier is not None:
                    self._files.delete_except()
                    return earlier
                self._attempts += 1
                snapshot, used = self._prepare(latest)
            except CorruptTableError:
                # A rollback deletes files of the snapshots that it removed.
                if latest is None or self._snapshots.is_kept(latest):
                    raise
                self._wait(started, latest.id + 1)
                continue
            if self._publish(snapshot):
                self._env.step("snapshot-published")
                if self._stands(latest, snapshot):
                    self._committed = snapshot
                    return CommitOutcome(snapshot, attempts=self._attempts, failures=self._finish(snapshot, used))
                self._take_back(snapshot)
                self._may_be_visible = self._may_be_needed(snapshot)
                raise CommitConflictError(
                    f"Table {self._env.paths.name}: the snapshot before {snapshot.id} was rolled back or expired while "
                    f"{snapshot.id} was published on it, and files of {snapshot.id} may have gone with it. Nothing was "
                    "committed; run it again.",
                    keeps_files=self._may_be_visible,
                )
            self._files.delete_except(self._reusable())
            self._wait(started, snapshot.id)

    def _publish(self, snapshot: Snapshot) -> bool:
        path = self._env.paths.snapshot_file(snapshot.id)
        data = checked_bytes(snapshot, path, MAX_SNAPSHOT_BYTES)
        self._may_be_visible, self._sent_again = True, False
        try:
            published = publish(
                self._env.file_io,
                path,
                data,
                self._env.surroundings.sleep,
                before_resend=lambda: self._check_resend(snapshot),
            )
        except (UnsupportedFeatureError, StorageError):
            self._may_be_visible = False
            raise
        self._may_be_visible = published
        return published

    def _stands(self, base: Snapshot | None, published: Snapshot) -> bool:
        """Whether a snapshot just published is the table's: False where `_take_back` has to remove it.

        A rollback that ended before the publication leaves it above a gap, where no reader finds it. So it is only
        acknowledged once the look succeeds: a look that the store fails is repeated, then the outcome is unknown.
        """
        for wait in (*_LOOK_WAITS, None):
            try:
                return self._is_kept(base, published)
            except Exception as error:
                if wait is None:
                    raise CommitOutcomeUnknownError(
                        f"Table {self._env.paths.name}: snapshot {published.id} was published, but the store failed when "
                        "the commit checked that no rollback had removed the snapshot before it "
                        f"({error_text(error)}). Rerun with the same commit user and batch id, which does nothing if the "
                        f"commit is visible; without a batch id, see first whether Table.snapshots() has {published.id}."
                    ) from error
                self._env.surroundings.sleep(wait)
        raise AssertionError("the last look returns or raises")

    def _is_kept(self, base: Snapshot | None, published: Snapshot) -> bool:
        has_files = not self._sent_again or self._has_its_list(published)
        return has_files and self._is_in_history(base, published)

    def _finish(self, snapshot: Snapshot, used: set[str | None]) -> tuple[Failure, ...]:
        """What follows a commit that stands, and what of it failed. No Exception leaves it."""
        step = f"the LATEST hint of snapshot {snapshot.id}"
        with after_commit_step(self._env.paths.name, step, _NO_HINT) as failures:
            self._snapshots.write_latest_hint(snapshot.id)
            self._env.step("hint-written")
        self._files.delete_except(used)
        return tuple(failures)

    def _is_in_history(self, base: Snapshot | None, published: Snapshot) -> bool:
        """Whether readers come to a snapshot just published: the one that it goes on from may have gone meanwhile.

        * A rollback removed it: files of it may be gone. An expiry removes older ones first, and never the newest; a
          rollback keeps an older one.
        * It expired. Others may have committed under the new one's id before, and theirs expired too: its id was free
          again, and is below all that readers see. Else the new one itself expires already, and what follows it knows it.
        """
        now = None if base is None else self._snapshots.try_get(base.id)
        if base is not None and base.is_same(now):
            return True
        ids = [] if base is None else self._snapshots.ids()
        if self._snapshots.is_expiring(published.id):
            return self._attempt.is_known(self._snapshots.latest())
        return base is None or (now is None and min(ids, default=published.id) >= base.id)

    def _check_resend(self, snapshot: Snapshot) -> None:
        """Refuse to send a snapshot again that may have landed unseen and been removed by a rollback, whose files go.

        A rollback has its consumer from before it removes until it has deleted, manifest lists last: where there is none,
        and then the list is, files stay.
        """
        self._sent_again = True
        if snapshot.is_same(self._snapshots.try_get(snapshot.id)):
            return
        consumers = ConsumerStore(self._env.file_io, self._env.paths)
        if consumers.is_rolled_back(snapshot.id) or not self._has_its_list(snapshot):
            raise CommitOutcomeUnknownError(
                f"Table {self._env.paths.name}: no answer told whether snapshot {snapshot.id} was published, and a "
                "rollback may have removed it since. No file was deleted. Rerun with the same commit user and batch id: "
                "it does nothing if this commit is visible after all."
            )

    def _has_its_list(self, snapshot: Snapshot) -> bool:
        return self._env.file_io.exists(self._env.paths.manifest(snapshot.delta_manifest_list))

    def _await_removal(self, latest: Snapshot, started: float) -> None:
        """Wait for the removal of the newest snapshot, which does not go on from the one below it: its writer takes it
        back in a moment, or a rollback removes it. If it is still there at the next attempt, its writer died.

        It is removed then if its own properties say that it was published on another snapshot than the one below it, and
        LATEST does not name it: no writer was told that it is committed. Where none lies below it, the file is missing.
        """
        gap = self._snapshots.try_get(latest.id - 1) is None
        is_named = (self._snapshots.told_latest_id() or 0) >= latest.id - gap
        path = self._env.paths.snapshot_file(latest.id - 1)
        below = latest.id - 1
        what = f"lies above a gap: snapshot {below} is missing" if gap else f"was not published on snapshot {below}"
        problem = (
            f"snapshot {latest.id} {what}. Nothing was committed or removed. Restore {path}, or roll the table back to "
            "an older snapshot, which removes the later ones."
        )
        if latest.is_same(self._unlinked):
            if is_named and not self._is_rolled_back(latest):
                raise self._damage(problem)
            if not gap and not is_named:
                self._take_back(latest)
        self._unlinked = latest
        self._attempts += 1
        self._wait(started, latest.id + 1, problem if gap or is_named else None, self._is_rolled_back(latest))

    def _is_below_a_gap(self, latest: Snapshot) -> bool:
        return self._snapshots.try_get(latest.id + 2) is not None

    def _await_rollback(self, latest: Snapshot, started: float) -> None:
        """Wait while snapshots lie above the id that is next: a commit in the gap would make them seem to go on from it.

        LATEST names the snapshot below the gap, or a consumer holds it, while a rollback is under way or was cut off.
        Else the file is missing. The writer of a snapshot that is published above the gap after this look takes it back.
        """
        path = self._env.paths.snapshot_file(latest.id + 1)
        problem = (
            f"snapshot {latest.id + 1} is missing, and later ones are there. Nothing was committed. Restore {path}, or "
            f"roll the table back to snapshot {latest.id}, which removes the later ones."
        )
        told = self._snapshots.told_latest_id()
        is_rollback = (told is not None and told <= latest.id) or self._is_rolled_back(latest)
        if told is not None and not is_rollback and latest.is_same(self._unlinked):
            raise self._damage(problem)
        self._unlinked = latest
        self._attempts += 1
        self._wait(started, latest.id + 1, problem, is_rollback)

    def _is_rolled_back(self, latest: Snapshot) -> bool:
        """Whether a rollback to this snapshot or an older one is under way, or was cut off."""
        return ConsumerStore(self._env.file_io, self._env.paths).is_rolled_back(latest.id + 1)

    def _damage(self, problem: str) -> CorruptTableError:
        return CorruptTableError(f"Table {self._env.paths.name}: {problem}")

    def _take_back(self, snapshot: Snapshot) -> None:
        """Remove a snapshot that nobody was told of: no hint names it yet, and a rollback would remove it too."""
        path = self._env.paths.snapshot_file(snapshot.id)
        if snapshot.is_same(self._snapshots.try_get(snapshot.id)):
            self._env.file_io.delete(path)

    def _may_be_needed(self, removed: Snapshot) -> bool:
        """Whether a tag or a branch may keep a snapshot that was removed, or one that was committed on it.

        Who makes a tag writes it and then looks for its snapshot. So a tag that is not seen here is not made.
        """
        try:
            retained = BranchStore(self._env.file_io, self._env.paths).retained()
        except Exception:  # noqa: BLE001  What keeps files is not known.
            return True
        states = [state for branch in retained for state in branch.snapshots]
        states += [tag.snapshot for branch in retained for tag in branch.tags.values()]
        return any(state.id >= removed.id for state in states)

    def _wait(self, started: float, lost: int, problem: str | None = None, is_rollback: bool = False) -> None:
        """Wait before the next attempt. After the last one it raises CommitConflictError, or CorruptTableError where a
        ``problem`` of the table's snapshots stays that no rollback explains.
        """
        retrying, surroundings = self._env.retrying, self._env.surroundings
        elapsed = int((surroundings.monotonic() - started) * 1000)
        retry = self._attempts - 1
        if retry >= retrying.max_retries or (retrying.timeout is not None and elapsed > retrying.timeout):
            if problem is not None and not is_rollback:
                raise self._damage(problem)
            why = (
                f"a rollback is under way, or was cut off: {problem}"
                if problem is not None
                else f"other commits or rollbacks came first {self._attempts} times in {elapsed} ms, last for snapshot "
                f"{lost}. Nothing was committed; commit again, or raise commit.max-retries ({retrying.max_retries}) "
                "or commit.timeout."
            )
            raise CommitConflictError(f"Table {self._env.paths.name}: {why}")
        surroundings.sleep(retrying.wait_seconds(retry, surroundings.chance()))

    def _prepare(self, latest: Snapshot | None) -> tuple[Snapshot, set[str | None]]:
        """Write the metadata files of an attempt; return its snapshot, unpublished, and the names it uses."""
        SchemaStore(self._env.file_io, self._env.paths).check_newest(self._env.schema, latest)
        changes = self._attempt.on(latest)
        step = self._env.step
        base_metas = self._base_metas(latest)
        base_name, base_size = self._files.write_list(base_metas)
        step("base-list-written")
        delta = self._delta if self._delta is not None else self._write_lists(changes.delta, "delta")
        self._delta = None if self._request.replaces_partitions else delta
        if self._request.message.changelog_entries and self._changelog is None:
            self._changelog = self._write_lists(self._request.message.changelog_entries, "changelog")
        index_manifest = None if latest is None else latest.index_manifest
        if changes.index is not None:
            index_manifest = self._files.write_index(changes.index) if changes.index else None
            step("index-manifest-written")
        snapshot = self._snapshot(latest, changes.delta, _Lists(base_metas, base_name, base_size), delta)
        snapshot = self._sealed(replace(snapshot, index_manifest=index_manifest), latest)
        lists = [
            _Lists(base_metas, base_name, base_size),
            delta,
            *([self._changelog] if self._changelog else []),
        ]
        used: set[str | None] = {index_manifest, *(part.name for part in lists)}
        used.update(meta.file_name for part in lists for meta in part.metas)
        return snapshot, used

    def _sealed(self, snapshot: Snapshot, latest: Snapshot | None) -> Snapshot:
        """The snapshot with its checksums. Its index manifest and its schema may be the last snapshot's."""
        checksums = {name: self._files.checksum(name) for name in snapshot.metadata_files}
        schema = self._env.schema
        if latest is not None:
            index = snapshot.index_manifest
            if index is not None and checksums[index] is None:
                checksums[index] = latest.checksum_of(index)
            checksums.update({name: latest.checksum_of(name) for name in latest.schema_files[-_MOST_SCHEMAS:]})
        if schema.file_checksum is not None:
            checksums[f"{SCHEMA_PREFIX}{schema.id}"] = schema.file_checksum
        return snapshot.signed().sealed(checksums)

    def _write_lists(self, entries: Sequence[ManifestEntry], what: str) -> _Lists:
        metas = self._files.write_manifests(entries)
        self._env.step(f"{what}-manifests-written")
        name, size = self._files.write_list(metas)
        self._env.step(f"{what}-list-written")
        return _Lists(metas, name, size)

    def _base_metas(self, latest: Snapshot | None) -> list[ManifestFileMeta]:
        """Return the manifests of the next base list. Merges once; later attempts use that result."""
        if latest is None:
            return []
        env = self._env
        current = read_manifest_metas(env.file_io, env.paths, latest)
        names = [meta.file_name for meta in current]
        if self._merged is not None:
            before, after = self._merged
            return after + current[len(before) :] if names[: len(before)] == before else current
        merged = merge_manifests(
            current,
            env.merging,
            lambda meta: read_manifest(env.file_io, env.paths, meta),
            self._files.write_manifests,
            self._partition_types,
        )
        self._merged = (names, merged)
        if merged != current:
            env.step("manifests-merged")
        return merged

    def _reusable(self) -> set[str | None]:
        """Names of files that the next attempt can use as they are."""
        used: set[str | None] = {meta.file_name for meta in self._merged[1]} if self._merged else set()
        for part in (self._delta, self._changelog):
            if part is not None:
                used.add(part.name)
                used.update(meta.file_name for meta in part.metas)
        return used

    def _snapshot(
        self, latest: Snapshot | None, delta: Sequence[ManifestEntry], base: _Lists, written: _Lists
    ) -> Snapshot:
        env, request = self._env, self._request
        rows = sum(e.file.row_count if e.kind == FileKind.ADD else -e.file.row_count for e in delta)
        previous = NO_SEQUENCE if latest is None else table_max_sequence(env.file_io, env.paths, latest)
        # Not asked for once more: a change since this write began is as good as one after it. Ids never go back.
        schema_id = max(env.schema.id, 0 if latest is None else latest.schema_id)
        watermarks = [w for w in (request.watermark, latest.watermark if latest else None) if w is not None]
        changelog = request.message.changelog_entries
        properties = {**request.properties, **self._replay.properties}
        message = request.message
        found = message.base_total_buckets if message.is_based_on(latest) else None
        properties = with_total_buckets(properties, latest, found, delta)
        number = 1 if latest is None else latest.id + 1
        if latest is not None:
            properties = {**properties, BASE_PROPERTY: latest.mark}
        properties = with_maintenance_records(properties, number, latest, self._snapshots.try_get)
        return Snapshot(
            id=number,
            schema_id=schema_id,
            base_manifest_list=base.name,
            base_manifest_list_size=base.size,
            delta_manifest_list=written.name,
            delta_manifest_list_size=written.size,
            changelog_manifest_list=self._changelog.name if self._changelog else None,
            changelog_manifest_list_size=self._changelog.size if self._changelog else None,
            commit_user=request.commit_user,
            commit_identifier=request.identifier,
            commit_kind=request.kind,
            # Time travel bisects by time, so it must not go back where this clock is behind another writer's.
            time_millis=max(env.surroundings.clock(), 0 if latest is None else latest.time_millis),
            total_record_count=rows + (0 if latest is None else latest.total_record_count),
            delta_record_count=rows,
            changelog_record_count=sum(e.file.row_count for e in changelog) if changelog else None,
            uuid=env.surroundings.new_uuid(),
            writer_version=env.writer_version,
            watermark=max(watermarks, default=None),
            statistics=request.statistics or inherited_statistics(env.file_io, env.paths, latest, schema_id),
            properties=with_max_sequence(properties, previous, delta) or None,
            next_row_id=(latest.next_row_id or 0) if latest else 0,
            operation=request.operation,
        )
