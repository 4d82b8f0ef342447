"""The actions of actors. Each is one operation of the engine; its outcome is compared with that of the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from greenlet import GreenletExit

from lakelsm.commit.commit_message import CommitOutcome
from lakelsm.commit.manifest_writer import ManifestFiles
from lakelsm.compact.compactor import Compactor
from lakelsm.errors import (
    BatchHistoryExpiredError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptTableError,
    InvalidInputError,
    LakelsmError,
    SnapshotNotFoundError,
    StorageError,
)
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakelsm.maintain.expiry.retention import requested_retention
from lakelsm.maintain.expiry.snapshot_expiry import expire_snapshots
from lakelsm.maintain.orphans.orphan_removal import remove_orphans
from lakelsm.maintain.versions.branches import create_branch, delete_branch
from lakelsm.maintain.versions.rollback import rollback, rollback_target
from lakelsm.maintain.versions.tags import create_tag, delete_tags, rename_tag, replace_tag, tag_snapshot
from lakelsm.plan.compaction_plan import CompactionScope
from lakelsm.plan.read_plan import plan_read
from lakelsm.results import CompactionStatus, TagInfo
from lakelsm.snapshots.manifest_scan import read_manifest_metas
from lakelsm.snapshots.table_store import TableStore
from lakelsm.write.batch_write import BatchWriter
from tests.simulation.ledger import Effect, Intent, Ledger, Violation
from tests.simulation.row_files import (
    ADDED,
    DELETED,
    DoubledRowError,
    InputRow,
    RowFileRunner,
    RowFileWriter,
    State,
    partition_row,
    read_rows,
)
from tests.simulation.scenario import Action
from tests.simulation.scheduler import Interrupted, Killed, Process

#: Errors that concurrent operations may cause. The operation then has no effect.
_LOST = (CommitConflictError, BatchHistoryExpiredError, SnapshotNotFoundError)
#: Actions that may be refused because others, or a killed run of the same action, made them impossible.
_REFUSABLE = ("tag", "retag", "rename_tag", "untag", "branch", "unbranch", "read_tag", "rollback")


class ActorRun:
    """Runs the actions of one actor, in a process that may be killed and started again."""

    def __init__(
        self, process: Process, table: TableStore, ledger: Ledger, stop: Callable[[BaseException], None]
    ) -> None:
        self._process = process
        self._main = self._table = table
        self._ledger = ledger
        self._stop = stop
        self._runner = RowFileRunner(table.file_io, process.environment, table.paths)
        self._tries = 0

    def run(self) -> None:
        """Run the actions. This is the body of the greenlet."""
        try:
            for action in self._process.actor.actions:
                self._carried_out(action)
        except (Killed, GreenletExit):
            return
        except (Violation, DoubledRowError, LakelsmError, OSError) as error:
            self._stop(error)

    def _carried_out(self, action: Action) -> None:
        """Run an action, and run it again after a kill, a failure or an unknown outcome."""
        again = action.again
        for _ in range(action.reruns + 1):
            done = self._attempt(action)
            self._ledger.outcomes[f"{action.kind} {'done' if done else 'failed'}"] += 1
            if done:
                if not again:
                    return
                again = False

    def _attempt(self, action: Action) -> bool:
        """Try an action. Return whether it is done and was acknowledged."""
        self._tries += 1
        self._process.had_fault = self._process.is_refusing
        self._process.only_looks = False
        losses, had_unacknowledged = self._ledger.losses, self._ledger.has_unacknowledged
        try:
            self._table = self._main.on_branch(action.branch) if action.branch else self._main
            getattr(self, f"_{action.kind}")(action)
        except Killed:
            if self._process.is_ended:
                raise
            self._process.restarted()
            return False
        except Interrupted:
            return False
        except _LOST:
            return False
        except (StorageError, TimeoutError, CommitOutcomeUnknownError) as error:
            # After a rollback freed a snapshot id, it is unknown whose snapshot has the id.
            is_unknown = isinstance(error, CommitOutcomeUnknownError) and self._ledger.rolls_back
            if not self._process.had_fault and not is_unknown:
                raise
            return False
        except InvalidInputError:
            if action.kind not in _REFUSABLE and not action.branch:
                raise
            return False
        except (CorruptTableError, FileNotFoundError):
            if self._ledger.losses == losses and not self._ledger.has_unacknowledged and not had_unacknowledged:
                raise
            return False  # The snapshot has expired, or the tag was never acknowledged.
        return True

    # -- writes ------------------------------------------------------------------------------------------------------

    def _append(self, action: Action) -> None:
        rows = list(action.rows)
        self._write(action, CommitKind.APPEND, _appended(rows), lambda writer, user, id: writer.append(rows, user, id))

    def _update(self, action: Action) -> None:
        self._change(action, lambda value: (ADDED, f"{value}+{action.name}"))

    def _delete(self, action: Action) -> None:
        self._change(action, lambda value: (DELETED, value))

    def _change(self, action: Action, change: Callable[[str], tuple[int, str]]) -> None:
        """Write new values of rows that are read. The rows that are found decide the new values."""
        identity = self._identity(action)

        def rows_of(base: Snapshot | None) -> list[InputRow]:
            state = self._rows_of(base)
            found = [key for key in dict.fromkeys(action.keys) if key in state]
            self._ledger.expect(self._process.actor.name, *identity, CommitKind.APPEND, _changed(found, change))
            return [(*key, *change(state[key])) for key in found]

        def write(writer: BatchWriter, user: str, identifier: int) -> object:  # type: ignore[type-arg]
            return writer.change(action.kind.upper(), rows_of, user, identifier)

        self._write(action, CommitKind.APPEND, _changed((), change), write, identity)

    def _overwrite(self, action: Action) -> None:
        rows, target = list(action.rows), action.partition
        replaced = {row[0] for row in rows} if target is None else set() if target == "*" else {target}

        def partitions(written: set[bytes]) -> Callable[[bytes], bool] | None:
            if target == "*":
                return None
            return (written if target is None else {partition_row(target)}).__contains__

        def effect(state: State) -> State:
            kept = {} if target == "*" else {key: value for key, value in state.items() if key[0] not in replaced}
            return _appended(rows)(kept)

        self._write(
            action, CommitKind.OVERWRITE, effect, lambda writer, user, id: writer.overwrite(rows, partitions, user, id)
        )

    def _identity(self, action: Action) -> tuple[str, int]:
        user = self._process.actor.user
        if user is not None:
            return user, action.number
        return f"{self._process.actor.name}.{self._tries}", BATCH_COMMIT_IDENTIFIER

    def _write(
        self,
        action: Action,
        kind: CommitKind,
        effect: Effect,
        write: Callable[[BatchWriter, str, int], object],  # type: ignore[type-arg]
        identity: tuple[str, int] | None = None,
    ) -> None:
        user, identifier = identity or self._identity(action)
        intent = self._ledger.expect(self._process.actor.name, user, identifier, kind, effect)
        before = len(intent.published)
        writer = BatchWriter(RowFileWriter(self._runner), self._table, environment=self._process.environment)
        try:
            result = write(writer, user, identifier)
        except CommitOutcomeUnknownError:
            raise
        except Exception as error:
            stands = len(intent.published) > before and self._ledger.stands(intent, self._table.paths.snapshot_dir)
            if stands and not self._has_twin():
                raise Violation(f"{user}/{identifier} failed with {error!r}, but its snapshot was published") from error
            raise
        self._check_acknowledged(intent, user, identifier, result.outcome)

    def _has_twin(self) -> bool:
        return self._process.actor.user is not None

    def _check_acknowledged(self, intent: Intent, user: str, identifier: int, outcome: CommitOutcome) -> None:
        where = f"{user}/{identifier}"
        if outcome.snapshot is not None:
            self._ledger.check_acknowledged(where, outcome.snapshot)
            if outcome.snapshot.uuid not in intent.published:
                raise Violation(f"{where} was acknowledged with snapshot {outcome.snapshot.id} of another batch")
        elif outcome.already_committed and not intent.published:
            raise Violation(f"{where} was acknowledged, but never published")

    # -- compactions and reads ---------------------------------------------------------------------------------------

    def _compact(self, action: Action) -> None:
        compactor = Compactor(self._runner, self._table, self._process.environment)
        result = compactor.compact(CompactionScope(full=action.amount == 1), commit_user=self._process.actor.name)
        if result.status is CompactionStatus.CONFLICT:
            raise CommitConflictError("a compaction lost")
        if result.status is CompactionStatus.DONE and not result.snapshot_ids and not self._process.had_fault:
            raise Violation("a compaction reports success, but published nothing")

    def _java(self, action: Action) -> None:
        """Simulate Java's compaction of manifests: one base list, an empty delta, properties of the newest snapshot."""
        store, environment = self._table, self._process.environment
        latest = store.snapshots.latest()
        if latest is None:
            return
        files = ManifestFiles(store, environment.new_uuid())
        base, _ = files.write_list(read_manifest_metas(store.file_io, store.paths, latest))
        delta, _ = files.write_list([])
        copied = replace(
            latest,
            id=latest.id + 1,
            base_manifest_list=base,
            base_manifest_list_size=None,
            delta_manifest_list=delta,
            delta_manifest_list_size=None,
            uuid=environment.new_uuid(),
            commit_user="java",
            commit_identifier=BATCH_COMMIT_IDENTIFIER,
            commit_kind=CommitKind.COMPACT,
            delta_record_count=0,
            writer_version="1.4.2",
            operation=None,
            extra={},
        )
        data = copied.to_json().encode()
        if not store.file_io.create_if_absent(store.paths.snapshot_file(copied.id), data):
            raise CommitConflictError("Java came second")
        store.file_io.write(store.paths.latest_hint, str(copied.id).encode())

    def _read(self, action: Action) -> None:
        snapshots = self._table.snapshots
        known = self._ledger.newest_id(self._table.paths)
        snapshot = snapshots.latest()
        found = None if snapshot is None else snapshot.id
        if known is not None and (found is None or found < known) and not self._ledger.rolls_back:
            raise Violation(f"a reader finds {found} as the newest snapshot, but {known} existed before the read")
        if snapshot is None:
            return
        if action.amount:
            ids = snapshots.ids()
            snapshot = snapshots.get(ids[int(self._process.chance() * len(ids))])
        self._check_read(snapshot)

    def _check_read(self, snapshot: Snapshot) -> None:
        rows = self._rows_of(snapshot)
        expected = self._ledger.state_of(snapshot)
        if expected is not None and rows != expected:
            raise Violation(f"a read of snapshot {snapshot.id} returns {rows} instead of {expected}")

    def _read_tag(self, action: Action) -> None:
        names = self._table.tags.names()
        if names:
            name = names[int(self._process.chance() * len(names))]
            path = self._table.paths.tag(name)
            if path in self._ledger.protected:
                tag = self._table.tags.get(name)
                if path in self._ledger.protected:
                    self._check_read(tag.snapshot)

    # -- upkeep ------------------------------------------------------------------------------------------------------

    def _remove_orphans(self, action: Action) -> None:
        environment = self._process.environment
        bound = environment.clock() - action.amount
        if action.again:
            self._process.only_looks = True
            remove_orphans(self._runner, self._table, bound, dry_run=True, environment=environment)
            self._process.only_looks = False
        remove_orphans(self._runner, self._table, bound, environment=environment)

    def _expire(self, action: Action) -> None:
        environment = self._process.environment
        retention = requested_retention(self._table.options, environment.clock(), retain_last=action.amount)
        if action.again:
            self._process.only_looks = True
            expire_snapshots(self._table, retention, dry_run=True, environment=environment)
            self._process.only_looks = False
        expire_snapshots(self._table, retention, environment=environment)

    def _rollback(self, action: Action) -> None:
        store, directory = self._table, self._table.paths.snapshot_dir
        to: int | str = action.name
        if not action.name:
            ids = store.snapshots.ids()
            if not ids:
                return
            to = ids[-1 - min(action.amount, len(ids) - 1)]
        target = rollback_target(store, to)
        later = {self._ledger.kept[path] for path in self._ledger.kept_above(directory, target.id)}
        rollback(store, target, environment=self._process.environment)
        stay = [path for path in self._ledger.kept_above(directory, target.id) if self._ledger.kept[path] in later]
        if stay:
            raise Violation(f"a rollback to {target.id} reports success, but {stay} still exist")

    # -- tags and branches -------------------------------------------------------------------------------------------

    def _tag(self, action: Action, make: Callable[..., TagInfo] = create_tag) -> None:
        environment = self._process.environment
        making = partial(make, self._table, action.name, environment=environment)
        tag_snapshot(self._table, self._some_id(action), making, environment)
        self._ledger.record_acknowledged(self._table.paths.tag(action.name), f"tag {action.name}")

    def _retag(self, action: Action) -> None:
        self._tag(action, replace_tag)

    def _rename_tag(self, action: Action) -> None:
        rename_tag(self._table, action.name, f"{action.name}-renamed", environment=self._process.environment)
        self._ledger.record_acknowledged(self._table.paths.tag(f"{action.name}-renamed"), f"tag {action.name}-renamed")

    def _untag(self, action: Action) -> None:
        delete_tags(self._table, [action.name])

    def _some_id(self, action: Action) -> int | None:
        ids = self._table.snapshots.ids() if action.amount else []
        return ids[int(self._process.chance() * len(ids))] if ids else None

    def _branch(self, action: Action) -> None:
        tag = self._main.paths.tag(action.partition or "")
        was_protected = tag in self._ledger.protected
        create_branch(self._main, action.name, action.partition)
        if not was_protected:
            return  # The tag was never acknowledged.
        for path in self._ledger.kept_below(self._main.paths.of_branch(action.name).branch_root):
            self._ledger.record_acknowledged(path, f"branch {action.name}")

    def _unbranch(self, action: Action) -> None:
        delete_branch(self._main, action.name)

    def _rows_of(self, snapshot: Snapshot | None) -> State:
        return read_rows(self._table.file_io, plan_read(self._table, snapshot, None))


def _appended(rows: Sequence[InputRow]) -> Effect:
    def effect(state: State) -> State:
        after = dict(state)
        for partition, key, kind, value in rows:
            if kind == ADDED:
                after[partition, key] = value
            else:
                after.pop((partition, key), None)
        return after

    return effect


def _changed(keys: Sequence[tuple[str, int]], change: Callable[[str], tuple[int, str]]) -> Effect:
    def effect(state: State) -> State:
        return _appended([(*key, *change(state.get(key, "(nothing)"))) for key in keys])(state)

    return effect
