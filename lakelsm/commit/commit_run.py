"""One optimistic commit: prepare it on the newest snapshot, publish it, and prepare it again after a lost race."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from lakelsm.commit.attempt_changes import AttemptChanges
from lakelsm.commit.attempt_files import keeps_files
from lakelsm.commit.commit_message import CommitOutcome, CommitRequest
from lakelsm.commit.concurrent_rollback import (
    Obstacle,
    ObstacleKind,
    find_obstacle,
    is_in_history,
    may_be_needed,
    may_be_rolled_back,
    remove_snapshot,
    remove_unless_followed,
)
from lakelsm.commit.manifest_writer import ManifestFiles
from lakelsm.commit.next_snapshot import Attempt, NextSnapshot
from lakelsm.commit.replay import ReplayCheck
from lakelsm.environment import Environment
from lakelsm.errors import CommitConflictError, CommitOutcomeUnknownError, CorruptTableError, LakelsmError
from lakelsm.failures import add_commit_note, after_commit_step
from lakelsm.format.snapshot import Snapshot
from lakelsm.operation_log import log_step
from lakelsm.options import TableOptions
from lakelsm.results import Failure
from lakelsm.results.failure import error_text
from lakelsm.snapshots.json_file import checked_bytes, publication
from lakelsm.snapshots.snapshot_manager import MAX_SNAPSHOT_BYTES
from lakelsm.snapshots.table_store import TableStore

Found = TypeVar("Found")

_LOG = logging.getLogger("lakelsm.commit")

#: Seconds before each retry of a check after the publication, if the store fails.
_CHECK_WAITS = (0.1, 0.2)
_NO_HINT = "No action is needed: readers find the snapshot without the hint, and the next commit writes it."
_RERUN = "Rerun with the same commit user and batch id: it does nothing if the commit is visible."


class CommitRun:
    """Runs the attempts of one request. An attempt passes what the next one can use again as a value, `Attempt`."""

    def __init__(
        self, store: TableStore, request: CommitRequest, environment: Environment, step: Callable[[str], None]
    ) -> None:
        self._store = store
        self._table = f"Table {store.name}"
        self._base_id = request.message.base_snapshot_id
        self._environment = environment
        self._step = step
        self._changes = AttemptChanges(store, request)
        self._replay = ReplayCheck(store, request)
        self._files = ManifestFiles(store, environment.new_uuid())
        self._next = NextSnapshot(store, request, self._files, environment=environment, step=step)

    def execute(self) -> CommitOutcome:
        """Publish the request. Raises as `Committer.commit`; deletes unneeded metadata files if that is safe."""
        tries = Tries(self._store.options, self._environment)
        known = self._base_id
        attempt: Attempt | None = None
        obstacle: Obstacle | None = None
        with self._unpublished():
            earlier = self._replay.before()
        if earlier is not None:
            return earlier
        while True:
            with self._unpublished():
                latest = self._store.snapshots.latest(known)
                known = known if latest is None else latest.id
                seen, obstacle = obstacle, None if latest is None else find_obstacle(self._store, latest)
                if obstacle is not None:
                    self._wait_for(obstacle, seen is not None and obstacle.latest.matches(seen.latest), tries)
                    continue
                made = self._prepared(latest, attempt, tries)
                if isinstance(made, CommitOutcome):
                    self._files.delete_except()
                    return made
            if made is not None:
                attempt = made
                if self._is_published(attempt.snapshot):
                    return self._confirmed(attempt, tries)
            with self._unpublished():
                if made is not None:
                    self._files.delete_except(made.reusable)
                self._wait(tries, latest)

    @contextmanager
    def _unpublished(self) -> Iterator[None]:
        """Delete the metadata files if the work within fails. REQUIRES: no snapshot can name them yet."""
        try:
            yield
        except BaseException:
            self._files.delete_except()
            raise

    def _prepared(self, latest: Snapshot | None, before: Attempt | None, tries: Tries) -> Attempt | CommitOutcome | None:
        """Return an attempt on the newest snapshot, or the outcome if the request was committed before.

        None if files of the newest snapshot are missing because a rollback deleted it.
        """
        try:
            earlier = self._replay.since(latest, tries.failed) or self._changes.published_before(latest, tries.failed)
            if earlier is not None:
                return earlier
            self._store.schemas.check_newest(self._store.schema, latest)
            made = self._next.prepare(latest, self._changes.on(latest), self._replay.properties, before)
            log_step(_LOG, "%s: attempt %d prepared snapshot %d", self._table, tries.failed + 1, made.snapshot.id)
            return made
        except CorruptTableError:
            if latest is None or self._store.snapshots.is_kept(latest):
                raise
            return None

    def _is_published(self, snapshot: Snapshot) -> bool:
        """Publish a snapshot. Returns False if another snapshot has its id."""
        path = self._store.paths.snapshot_file(snapshot.id)
        try:
            data = checked_bytes(snapshot, path, MAX_SNAPSHOT_BYTES)
            sent = publication(self._store.file_io, path, data, self._environment.sleep)
        except LakelsmError as error:
            if not keeps_files(error):  # The snapshot was not sent.
                self._files.delete_except()
            raise
        except Exception as error:
            raise self._unknown(error) from error
        if sent.in_doubt and self._checked(snapshot, partial(may_be_rolled_back, self._store, snapshot)):
            if sent.is_ours:
                self._checked(snapshot, partial(remove_unless_followed, self._store, snapshot))
            raise CommitOutcomeUnknownError(
                f"{self._table}: the request for snapshot {snapshot.id} had no answer, and a rollback may have deleted "
                f"the snapshot since. {_RERUN}"
            )
        done = "is published" if sent.is_ours else "was published by another commit"
        log_step(_LOG, "%s: snapshot %d %s", self._table, snapshot.id, done)
        return sent.is_ours

    def _confirmed(self, attempt: Attempt, tries: Tries) -> CommitOutcome:
        """Return the outcome of an attempt whose snapshot was just published.

        Raises CommitConflictError if a rollback deleted the base snapshot.
        """
        snapshot = attempt.snapshot
        try:
            self._step("snapshot-published")
        except Exception as error:
            raise self._unknown(error) from error
        if not self._checked(snapshot, partial(is_in_history, self._store, self._changes, attempt.base, snapshot)):
            self._checked(snapshot, partial(remove_snapshot, self._store, snapshot))
            keeps = may_be_needed(self._store, snapshot)
            if not keeps:
                self._files.delete_except()
            raise CommitConflictError(
                f"{self._table}: the base of snapshot {snapshot.id} was rolled back or expired while {snapshot.id} was "
                "published. Nothing is committed; run it again.",
                keeps_files=keeps,
            )
        try:
            return CommitOutcome(snapshot, attempts=tries.failed + 1, failures=self._finish(attempt))
        except BaseException as error:  # An interruption: `_finish` raises no Exception.
            add_commit_note(error, self._store.name, [snapshot.id])
            raise

    def _finish(self, attempt: Attempt) -> tuple[Failure, ...]:
        """Write the LATEST hint and delete unneeded files. Returns the failures; raises no Exception."""
        number = attempt.snapshot.id
        with after_commit_step(self._store.name, f"the LATEST hint of snapshot {number}", _NO_HINT) as failures:
            self._store.snapshots.write_latest_hint(attempt.snapshot)
            self._step("hint-written")
        self._files.delete_except(attempt.used)
        return tuple(failures)

    def _checked(self, snapshot: Snapshot, check: Callable[[], Found]) -> Found:
        """Return the result of a check after the publication. If the store fails repeatedly, the outcome is unknown."""
        for wait in (*_CHECK_WAITS, None):
            try:
                return check()
            except Exception as error:
                if wait is None:
                    raise CommitOutcomeUnknownError(
                        f"{self._table}: snapshot {snapshot.id} was published, but the store failed while the commit "
                        f"checked for a rollback ({error_text(error)}). {_RERUN}"
                    ) from error
                log_step(_LOG, "%s: the check of snapshot %d is repeated: %s", self._table, snapshot.id, error)
                self._environment.sleep(wait)
        raise AssertionError("the loop ended without a result or an error")

    def _unknown(self, error: Exception) -> CommitOutcomeUnknownError:
        return CommitOutcomeUnknownError(
            f"{self._table}: the commit failed ({error}), and its snapshot may be visible. {_RERUN}"
        )

    def _wait_for(self, obstacle: Obstacle, is_seen_again: bool, tries: Tries) -> None:
        """Wait before the next look at an obstacle. Raises an error of its kind after the last attempt."""
        damage = CorruptTableError(f"{self._table}: {obstacle.text}")
        log_step(_LOG, "%s: no commit can follow snapshot %d: %s", self._table, obstacle.latest.id, obstacle.text)
        if is_seen_again and obstacle.kind is ObstacleKind.DAMAGE:
            raise damage
        if is_seen_again and obstacle.kind is ObstacleKind.ORPHANED:
            remove_snapshot(self._store, obstacle.latest)
        if obstacle.kind is ObstacleKind.ORPHANED:
            self._wait(tries, obstacle.latest)
        elif not tries.wait():
            if obstacle.kind is not ObstacleKind.ROLLBACK:
                raise damage
            raise CommitConflictError(f"{self._table}: a rollback is running or was interrupted: {obstacle.text}")

    def _wait(self, tries: Tries, latest: Snapshot | None) -> None:
        """Wait after a lost race. Raises CommitConflictError after the last attempt."""
        if not tries.wait():
            lost = 1 if latest is None else latest.id + 1
            raise CommitConflictError(
                f"{self._table}: other commits or rollbacks won {tries.failed} times in {tries.elapsed} ms, last for "
                f"snapshot {lost}. Nothing is committed; run it again, or raise commit.max-retries "
                f"({self._store.options.commit_max_retries}) or commit.timeout."
            )


class Tries:
    """Counts the failed attempts of one commit and waits between them, as the options ``commit.*`` say."""

    def __init__(self, options: TableOptions, environment: Environment) -> None:
        self._options, self._environment = options, environment
        self._started = environment.monotonic()
        self.failed = 0

    @property
    def elapsed(self) -> int:
        """Milliseconds since the first attempt began."""
        return int((self._environment.monotonic() - self._started) * 1000)

    def wait(self) -> bool:
        """Count a failed attempt, and wait before the next one. Returns False if the options allow no more attempts."""
        retry, self.failed = self.failed, self.failed + 1
        timeout = self._options.commit_timeout
        if retry >= self._options.commit_max_retries or (timeout is not None and self.elapsed > timeout):
            return False
        wait = wait_seconds(self._options, retry, self._environment.chance())
        log_step(_LOG, "Attempt %d of a commit failed; the next one begins in %.3f s", self.failed, wait)
        self._environment.sleep(wait)
        return True


def wait_seconds(options: TableOptions, retry: int, chance: float) -> float:
    """Return the seconds before a retry (counted from 0).

    The wait doubles up to ``commit.max-retry-wait``; ``chance`` in [0, 1) adds up to a fifth.
    """
    wait = min(options.commit_min_retry_wait * 2.0 ** min(retry, 40), float(options.commit_max_retry_wait))
    return wait * (1 + 0.2 * chance) / 1000
