"""Faults that are planted in the engine, one at a time. Each disables one check, and the simulation must find it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from lakelsm.commit import (
    append_conflict,
    attempt_changes,
    attempt_files,
    commit_run,
    conflict,
    manifest_merge,
    next_snapshot,
    replay,
)
from lakelsm.commit.attempt_changes import AttemptChanges
from lakelsm.commit.attempt_files import AttemptFiles
from lakelsm.commit.commit_message import CommitMessage
from lakelsm.commit.commit_run import CommitRun
from lakelsm.commit.live_files import LiveFiles
from lakelsm.commit.manifest_writer import ManifestFiles
from lakelsm.commit.next_snapshot import Attempt, NextSnapshot
from lakelsm.commit.replay import ReplayCheck
from lakelsm.errors import CommitOutcomeUnknownError, StorageError
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.deletion.deletion_candidates import file_key
from lakelsm.maintain.expiry.expired_files import ExpiredFiles
from lakelsm.maintain.orphans import orphan_removal
from lakelsm.maintain.versions import tags
from lakelsm.snapshots.branch_store import BranchStore
from lakelsm.snapshots.json_file import Publication
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.write import batch_write
from tests.simulation.memory_store import ActorFiles

#: (object, attribute, replacement).
Planted = Sequence[tuple[object, str, Any]]


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant the fault in the engine within the block."""
    with ExitStack() as patches:
        for target, attribute, stand_in in PLANTED_FAULTS[name]():
            patches.enter_context(patch.object(target, attribute, stand_in))
        yield


def _publish_without_read_back() -> Planted:
    def publish(file_io: Any, path: str, data: bytes, *more: object) -> Publication:
        try:
            return Publication(file_io.create_if_absent(path, data), in_doubt=False)
        except OSError:
            return Publication(False, in_doubt=False)

    return [(commit_run, "publication", publish)]


def _publish_trusts_the_answer_exists() -> Planted:
    """After an error the request is sent again, and the answer "exists" is taken for another writer's file."""

    def publish(file_io: Any, path: str, data: bytes, *more: object) -> Publication:
        for _ in range(3):
            try:
                return Publication(file_io.create_if_absent(path, data), in_doubt=False)
            except OSError:
                continue
        raise CommitOutcomeUnknownError(path)

    return [(commit_run, "publication", publish)]


def _unknown_outcome_taken_for_failure() -> Planted:
    """Manifests and data are deleted although the snapshot may be visible."""
    real = commit_run.publication

    def publish(*arguments: Any) -> Publication:
        try:
            return real(*arguments)
        except CommitOutcomeUnknownError as error:
            raise StorageError(str(error)) from error

    return [(commit_run, "publication", publish)]


def _manifests_deleted_whatever_failed() -> Planted:
    real = CommitRun.execute

    def execute(run: Any) -> Any:
        try:
            return real(run)
        except BaseException:
            run._files.delete_except()
            raise

    return [(CommitRun, "execute", execute)]


def _data_deleted_whatever_failed() -> Planted:
    def leave(files: Any, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            attempt_files.delete_unpublished(files._store.file_io, files._found())

    return [(AttemptFiles, "__exit__", leave)]


def _nothing(*arguments: object, **more: object) -> None:
    return None


def _no_conflicts(*arguments: object, **more: object) -> list[Any]:
    return []


def _replay_search_ends_at_the_users_newest() -> Planted:
    def search(check: Any, of_user: Any, attempts: int) -> Any:
        for snapshot in of_user:
            return check._outcome(snapshot, attempts) if check._is_same(snapshot) else None
        return None

    return [(ReplayCheck, "_search", search)]


def _lower_identifiers_taken_for_committed() -> Planted:
    """Treat every lower identifier as committed, as Java does."""

    def matches(check: Any, snapshot: Any) -> bool:
        mine = snapshot.commit_user == check._request.commit_user and snapshot.commit_kind in replay._WRITES
        return bool(mine and snapshot.commit_identifier >= check._request.identifier)

    return [(ReplayCheck, "_is_same", matches)]


def _missing_files_allowed() -> Planted:
    real = conflict._merge

    def merge(base: Any, delta: Any) -> Any:
        live, found = real(base, delta)
        return live, [one for one in found if one.kind is not conflict.ConflictKind.MISSING_FILE]

    return [(conflict, "_merge", merge)]


def _only_the_newest_snapshot_is_checked() -> Planted:
    def since(changes: Any, latest: Any) -> Any:
        return [latest] if latest.id > (changes._request.message.base_snapshot_id or 0) else []

    return [(AttemptChanges, "_since_base", since)]


def _base_read_once() -> Planted:
    """The base list of the first attempt is used again after a lost race."""
    real = NextSnapshot._merged

    def merged(prepared: Any, latest: Any, before: Any) -> Any:
        return real(prepared, latest, None) if before is None else (before.merged, before.base_list.metas)

    return [(NextSnapshot, "_merged", merged)]


def _live_files_found_once(name: str) -> Planted:
    """The live files that an attempt found are used again after a lost race."""
    real = getattr(LiveFiles, name)

    def found(live: Any, *arguments: Any) -> Any:
        if not hasattr(live, "_first"):
            live._first = real(live, *arguments)
        return live._first

    return [(LiveFiles, name, found)]


def _upgraded_files_taken_for_new() -> Planted:
    def names(message: Any) -> frozenset[str]:
        return frozenset(entry.file.file_name for entry in message.entries)

    return [(CommitMessage, "new_file_names", property(names))]


def _merged_manifests_kept_too() -> Planted:
    """A merge of manifests leaves the merged manifests in the list."""
    real = next_snapshot.merge_manifests

    def merge(metas: Any, *rest: Any) -> Any:
        merged = real(metas, *rest)
        known = {meta.file_name for meta in merged}
        return [*merged, *(meta for meta in metas[:1] if meta.file_name not in known)]

    return [(next_snapshot, "merge_manifests", merge)]


def _deletes_dropped_by_merges() -> Planted:
    """A minor merge drops the DELETE whose ADD is in an older manifest."""
    real = manifest_merge.cancel

    def cancel(entries: Any) -> Any:
        return [entry for entry in real(entries) if entry.kind == conflict.FileKind.ADD]

    return [(manifest_merge, "cancel", cancel)]


def _hint_trusted() -> Planted:
    """The LATEST hint is used without a search for newer snapshots."""
    real_id, real = SnapshotManager.latest_id, SnapshotManager.latest

    def latest_id(manager: Any) -> int | None:
        hint = manager._hint(manager._paths.latest_hint)
        return hint if hint is not None else real_id(manager)

    def latest(manager: Any, known: int | None = None) -> Any:
        hint = manager._hint(manager._paths.latest_hint)
        return manager.get(hint) if hint is not None else real(manager, known)

    return [(SnapshotManager, "latest_id", latest_id), (SnapshotManager, "latest", latest)]


def _hint_before_the_snapshot() -> Planted:
    """LATEST is written before the snapshot is published, and is used without a search."""
    real = CommitRun._is_published

    def publish(run: Any, snapshot: Any) -> bool:
        run._store.file_io.write(run._store.paths.latest_hint, str(snapshot.id).encode(), durable=False)
        return real(run, snapshot)

    return [(CommitRun, "_is_published", publish), *_hint_trusted()]


def _snapshot_before_its_lists() -> Planted:
    """Metadata files are written after the snapshot is published."""
    real_publish = CommitRun._is_published

    def write(files: Any, name: str, data: bytes) -> str:
        files._created.append(name)
        files._checksums[name] = zlib.crc32(data)
        files.__dict__.setdefault("_held", []).append((name, data))
        return name

    def publish(run: Any, snapshot: Any) -> bool:
        published = real_publish(run, snapshot)
        for name, data in run._files.__dict__.pop("_held", []):
            run._store.file_io.write(run._store.paths.manifest(name), data)
        return published

    return [(ManifestFiles, "_write", write), (CommitRun, "_is_published", publish)]


def _create_overwrites() -> Planted:
    """Create-if-absent of the store is a check followed by a write."""

    def create(files: Any, path: str, data: bytes) -> bool:
        if files.exists(path):
            return False
        files.write(path, data)
        return True

    return [(ActorFiles, "create_if_absent", create)]


def _orphans_of_the_main_branch() -> Planted:
    """Other branches are not read."""
    real = BranchStore.retained
    return [(BranchStore, "retained", lambda branches: real(branches)[:1])]


def _moved_files_expire() -> Planted:
    """A file that a delta deletes on one level and adds on another is treated as deleted."""

    def add_deletions(files: Any, snapshot_id: int, delta: Any) -> None:
        for entry in delta:
            if entry.kind == conflict.FileKind.DELETE:
                files.candidates.data[file_key(entry)] = entry
                files._deleted_at[file_key(entry)] = snapshot_id

    return [(ExpiredFiles, "_add_deletions", add_deletions)]


def _instead(*stand_ins: tuple[object, str, Any]) -> Callable[[], Planted]:
    """Return a fault that needs nothing of the replaced functions."""
    return lambda: stand_ins


_NO_SEQUENCE_CONFLICTS = (append_conflict, "_check_sequences", _no_conflicts)
#: The faults by name. With "manifests of a lost race …", manifests that the next attempt uses are deleted too.
PLANTED_FAULTS: Mapping[str, Callable[[], Planted]] = {
    "publish without read-back": _publish_without_read_back,
    "publish takes 'exists' after an error for another writer": _publish_trusts_the_answer_exists,
    "an unknown outcome counts as a failure": _unknown_outcome_taken_for_failure,
    "manifests are deleted whatever failed": _manifests_deleted_whatever_failed,
    "data files are deleted whatever failed": _data_deleted_whatever_failed,
    "replay check off": _instead(
        (ReplayCheck, "before", _nothing),
        (ReplayCheck, "since", _nothing),
        (AttemptChanges, "published_before", _nothing),
    ),
    "replay is checked once": _instead((ReplayCheck, "since", _nothing)),
    "replay search ends at the user's newest": _replay_search_ends_at_the_users_newest,
    "lower identifiers count as committed": _lower_identifiers_taken_for_committed,
    "deleted files may be deleted again": _missing_files_allowed,
    "no conflict checks against live files": _instead((AttemptChanges, "_check", _no_conflicts)),
    "sequence conflicts allowed": _instead(_NO_SEQUENCE_CONFLICTS),
    "rows may change under an update": _instead((attempt_changes, "check_rows_read", _no_conflicts)),
    "written keys are not looked up": _instead((batch_write, "others_wrote_keys", lambda *arguments: False)),
    "only the newest snapshot is checked": _only_the_newest_snapshot_is_checked,
    "the base is read once": _base_read_once,
    "an overwrite is planned once": partial(_live_files_found_once, "of_partitions"),
    "live files are read once": partial(_live_files_found_once, "of_buckets"),
    "manifests of a lost race are deleted and used": _instead((Attempt, "reusable", property(lambda attempt: set()))),
    "moved files count as new files": _upgraded_files_taken_for_new,
    "a merged manifest stays": _merged_manifests_kept_too,
    "merges of manifests drop deletes": _deletes_dropped_by_merges,
    "the LATEST hint is trusted": _hint_trusted,
    "the LATEST hint is written first": _hint_before_the_snapshot,
    "snapshots are published before their lists": _snapshot_before_its_lists,
    "create-if-absent overwrites": _create_overwrites,
    "rows are numbered from 0": _instead(
        (batch_write, "table_max_sequence", lambda *arguments: -1), _NO_SEQUENCE_CONFLICTS
    ),
    "a commit under an expired id is acknowledged": _instead((commit_run, "is_in_history", lambda *arguments: True)),
    "a new tag is not checked again": _instead((tags, "_is_kept", lambda *arguments: True)),
    "expiry ignores tags": _instead((ExpiredFiles, "_keep_own_tags", _nothing)),
    "expiry ignores branches": _instead((ExpiredFiles, "_keep_branch", _nothing)),
    "properties that Java copied are trusted": _instead(
        (Snapshot, "own_properties", property(lambda snapshot: snapshot.properties or {}))
    ),
    "expiry is not announced": _instead((SnapshotManager, "announce_earliest", _nothing)),
    "a moved file is deleted by expiry": _moved_files_expire,
    "orphan removal without an age bound": _instead(
        (orphan_removal, "age_bound", lambda *arguments, **more: 4_102_444_800_000)
    ),
    "orphan removal by the caller's clock": _instead(
        (orphan_removal, "age_bound", lambda store, bound, environment, **more: bound)
    ),
    "orphan removal reads only the main branch": _orphans_of_the_main_branch,
}
