"""Finds and reads snapshots (docs/format.md 4.2). Hints may be missing, too low or too high."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from itertools import pairwise

from lakelsm.environment import SYSTEM
from lakelsm.errors import CorruptTableError, SnapshotNotFoundError
from lakelsm.format.file_names import snapshot_id_of
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import Snapshot, newest_at
from lakelsm.snapshots.consumer_store import ConsumerStore
from lakelsm.snapshots.rollback_record import is_left_by_rollback, record_rollback
from lakelsm.storage import FileIO

#: The number of ids after a hint that are probed before the directory is listed.
_PROBES = 8
#: Attempts to read the newest snapshot: expiry or a rollback can delete it after its id was listed.
_LATEST_RETRIES = 5
#: Seconds between reads of a LATEST hint that names a later snapshot than the newest one.
_LATEST_WAIT = 0.1
#: The maximum sizes of a snapshot or tag file and of a hint file, in bytes.
MAX_SNAPSHOT_BYTES = 16 << 20
_MAX_HINT_BYTES = 64
#: Ids have 64 bits.
_MAX_ID = (1 << 63) - 1


class SnapshotManager:
    """Reads the ``snapshot/`` directory of one branch of a table. Caches nothing."""

    def __init__(self, file_io: FileIO, paths: TablePaths, sleep: Callable[[float], None] = SYSTEM.sleep) -> None:
        self._file_io = file_io
        self._paths = paths
        self._sleep = sleep

    def latest_id(self) -> int | None:
        """Return the newest snapshot's id, or None for a table without snapshots.

        If the snapshot of the LATEST hint exists, the next ids are probed, otherwise all are listed. Raises
        CorruptTableError if the hint names a later snapshot than the newest one, because a file is missing.
        """
        hint = self._hint(self._paths.latest_hint)
        if hint is not None and self._exists(hint):
            for candidate in range(hint, hint + _PROBES):
                if not self._exists(candidate + 1):
                    return candidate
        return self._listed_newest()

    def earliest_id(self) -> int | None:
        """Return the earliest snapshot's id, or None for a table without snapshots."""
        hint = self._hint(self._paths.earliest_hint)
        for candidate in (hint, 1):
            if candidate is not None and self._exists(candidate):
                return candidate
        return min(self._listed(), default=None)

    def ids(self) -> Sequence[int]:
        """Return the ids of all snapshots that exist, ascending."""
        return sorted(self._listed())

    def latest(self, known: int | None = None) -> Snapshot | None:
        """Return the newest snapshot, or None for a table without snapshots.

        ``known`` is an id that was the newest earlier: if it still exists, the hint is not read. Raises as `latest_id`.
        """
        found = None if known is None else self._newest_from(known, probes=2)
        if found is None:
            hint = self._hint(self._paths.latest_hint)
            found = None if hint is None else self._newest_from(hint, _PROBES)
        if found is not None:
            return found
        for _ in range(_LATEST_RETRIES):
            newest = self._listed_newest()
            if newest is None:
                return None
            snapshot = self.try_get(newest)
            if snapshot is not None:
                return snapshot
        raise CorruptTableError(
            f"Table {self._paths.name}: snapshot {newest} is listed, but its file does not exist. Restore the file."
        )

    def get(self, snapshot_id: int) -> Snapshot:
        """Return one snapshot.

        Raises SnapshotNotFoundError, which says whether it expired and which snapshots exist, or CorruptTableError if its
        file is missing between others.
        """
        snapshot = self.try_get(snapshot_id)
        if snapshot is None:
            ids = self.ids()
            if ids and ids[0] < snapshot_id < ids[-1]:
                self._check_missing(snapshot_id, ids[-1])
            raise SnapshotNotFoundError(self._why_missing(snapshot_id))
        return snapshot

    def check_complete(self) -> None:
        """Raise CorruptTableError if a snapshot file is missing: one between others, or one that LATEST names.

        An expired snapshot, and one that a rollback deletes, is not missing.
        """
        self._listed_newest()
        for before, after in pairwise(self.ids()):
            for snapshot_id in range(before + 1, after):
                self._check_missing(snapshot_id, after)

    def _check_missing(self, snapshot_id: int, later: int) -> None:
        """Raise CorruptTableError if a snapshot below a later one is missing, unless it expired or was rolled back.

        A rollback writes a lower id to LATEST before it deletes. It also deletes a later snapshot that is published
        concurrently.
        """
        hinted = self.hinted_latest_id()
        is_named = hinted is None or hinted >= snapshot_id
        if self._exists(snapshot_id) or not is_named or self.is_expiring(snapshot_id):
            return
        if not ConsumerStore(self._file_io, self._paths).is_rolled_back(later) and self._exists(later):
            raise CorruptTableError(
                f"Table {self._paths.name}: {self._paths.snapshot_file(snapshot_id)} is missing, and later snapshots "
                "exist. Restore the file, or roll the table back to an older snapshot, which deletes the later ones."
            )

    def try_get(self, snapshot_id: int) -> Snapshot | None:
        """Return one snapshot, or None if it does not exist. Raises CorruptTableError if it is damaged."""
        stored = self._stored(snapshot_id)
        if stored is None:
            return None
        path, data = stored
        snapshot = Snapshot.from_json(data, path)
        if snapshot.id != snapshot_id:
            raise CorruptTableError(f"{path} is damaged: it contains snapshot {snapshot.id}. Restore the file.")
        return snapshot

    def list(self) -> Sequence[Snapshot]:
        """Return all snapshots, ascending by id, without those that expire during the call."""
        found = (self.try_get(snapshot_id) for snapshot_id in self.ids())
        return [snapshot for snapshot in found if snapshot is not None]

    def at_or_before(self, millis: int) -> Snapshot:
        """Return the newest snapshot that was committed at or before a time (epoch milliseconds), by bisection.

        Raises SnapshotNotFoundError if no snapshot is old enough.
        """
        best = newest_at(millis, self.ids(), self.try_get)
        if best is None:
            raise SnapshotNotFoundError(self._why_none_before(millis))
        return best

    def of_user(self, commit_user: str, below: int | None = None) -> Iterator[Snapshot]:
        """Yield the snapshots of a commit user with ids below ``below`` (None: all), newest first."""
        needle = _json_text_needle(commit_user)
        for path, data in self._descending(below):
            if needle is not None and needle not in data:
                continue
            snapshot = Snapshot.from_json(data, path)
            if snapshot.commit_user == commit_user:
                yield snapshot

    def write_latest_hint(self, published: Snapshot) -> None:
        """Write the id of a snapshot that was just published to LATEST.

        As in Java, the old hint is not read first: a hint that is a little too low costs readers some probes. If a
        rollback has deleted the snapshot, the hint is set to the newest snapshot in the history, because a hint that is
        too high counts as damage. Raises the errors of the file system; the snapshot is visible without the hint.
        """
        number = published.id
        for _ in range(_LATEST_RETRIES):
            self._file_io.write(self._paths.latest_hint, str(number).encode("ascii"), durable=False)
            found = self.try_get(number)
            if found is not None and (found.matches(published) or self.is_linked(found)):
                return
            newest = self.newest_linked()
            number = number if newest is None else newest.id

    def newest_linked(self) -> Snapshot | None:
        """Return the newest snapshot that is not orphaned; None for a table without snapshots.

        LATEST never names an orphaned snapshot; its writer deletes it.
        """
        found = map(self.try_get, reversed(self.ids()))
        return next((snapshot for snapshot in found if snapshot is not None and self.is_linked(snapshot)), None)

    def hinted_latest_id(self) -> int | None:
        """Return the id of the LATEST hint, also if the snapshot does not exist; None if there is no hint.

        Raises the errors of the store: a hint that cannot be read is not a missing one.
        """
        return self._read_hint(self._paths.latest_hint)

    def hinted_earliest_id(self) -> int | None:
        """Return the earliest snapshot's id. Writes a missing EARLIEST, so that later calls do not list."""
        hint = self._hint(self._paths.earliest_hint)
        if hint is not None and self._exists(hint):
            return hint
        found = min(self._listed(), default=None)
        if found is not None:  # Must not overwrite an id that an expiry announces concurrently.
            self._file_io.create_if_absent(self._paths.earliest_hint, str(found).encode("ascii"))
        return found

    def announce_earliest(self, snapshot_id: int) -> None:
        """Write to EARLIEST that all snapshots below this one expire, before any deletion. EARLIEST never decreases.

        The creation of a tag on an old snapshot checks `is_expiring` afterwards, so at least one sees the other.
        """
        hint = self._read_hint(self._paths.earliest_hint)
        if hint is None or hint < snapshot_id or not self._exists(hint):
            self._file_io.write(self._paths.earliest_hint, str(snapshot_id).encode("ascii"))

    def is_expiring(self, snapshot_id: int) -> bool:
        """Return whether an existing snapshot is expiring: EARLIEST names a later one, which exists.

        Raises the errors of the store: an EARLIEST that cannot be read may announce the expiry. If the snapshot that it
        names is missing, it is read again: the next expiry raises EARLIEST before it deletes that snapshot, a rollback
        does not.
        """
        known, earliest = None, self._read_hint(self._paths.earliest_hint)
        while earliest is not None and snapshot_id < earliest and earliest != known:
            if self._exists(earliest):
                return True
            known, earliest = earliest, self._read_hint(self._paths.earliest_hint)
        return False

    def withdraw_earliest(self, snapshot_id: int) -> None:
        """Lower EARLIEST to the earliest snapshot if it names one above ``snapshot_id``, which was rolled back."""
        hint = self._read_hint(self._paths.earliest_hint)
        if hint is not None and hint > snapshot_id:
            self._file_io.write(self._paths.earliest_hint, str(min(self._listed(), default=1)).encode("ascii"))

    def record_rollback(self, target: Snapshot) -> None:
        """Record that all snapshots above ``target`` were deleted, before the rollback's consumer is deleted."""
        record_rollback(self._file_io, self._paths, target)

    def is_linked(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot is not orphaned: its base is the snapshot below it, or has expired.

        A rollback deleted the base of an orphaned snapshot. Such a snapshot is not in the history of the table, though it
        may seem to be if ids are used again. Its writer deletes it, unless the writer crashed. A commit can only have
        built on it if it was published before the last listing of the rollback, and then the rollback deletes both. So a
        commit that checks its base first never builds on an orphaned snapshot.
        """
        if snapshot.id == 1:
            return True
        before = self.try_get(snapshot.id - 1)
        if before is not None and snapshot.follows(before):
            return True
        if self.is_expiring(snapshot.id - 1):  # A commit may have published another snapshot under the expired id.
            return True
        return before is None and self.earliest_id() == snapshot.id

    def is_kept(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot still exists with its files: it is neither expiring nor orphaned.

        The writer of an orphaned snapshot deletes it before LATEST names it.
        """
        if not snapshot.matches(self.try_get(snapshot.id)) or self.is_expiring(snapshot.id):
            return False
        return self.is_linked(snapshot) or (self.hinted_latest_id() or 0) >= snapshot.id

    def _newest_from(self, snapshot_id: int, probes: int) -> Snapshot | None:
        """Return the newest snapshot, by probing an id and the next ``probes`` ids; None if that does not find it."""
        snapshot = self.try_get(snapshot_id)
        for _ in range(probes if snapshot is not None else 0):
            assert snapshot is not None
            newer = self.try_get(snapshot.id + 1)
            if newer is None:
                return snapshot
            snapshot = newer
        return None

    def _descending(self, below: int | None) -> Iterator[tuple[str, bytes]]:
        """Yield path and content of the snapshots below an id, newest first. Below a missing one, ids are listed."""
        lowest = below
        for snapshot_id in range((below or 1) - 1, 0, -1):
            stored = self._stored(snapshot_id)
            if stored is None:
                break
            lowest = snapshot_id
            yield stored
        if lowest == 1:
            return
        for snapshot_id in reversed(self.ids()):
            stored = self._stored(snapshot_id) if lowest is None or snapshot_id < lowest else None
            if stored is not None:
                yield stored

    def _stored(self, snapshot_id: int) -> tuple[str, bytes] | None:
        """Return the path and the content of a snapshot file; None if it does not exist."""
        path = self._paths.snapshot_file(snapshot_id)
        try:
            return path, self._file_io.read(path, MAX_SNAPSHOT_BYTES)
        except FileNotFoundError:
            return None

    def _listed_newest(self) -> int | None:
        """Return the largest listed id. Raises CorruptTableError if LATEST names a larger one.

        LATEST is written after a snapshot is published, and before a rollback deletes snapshots. Only a commit during a
        rollback may write it too late. Then the rollback, whose consumer still exists, or the commit corrects it. If the
        commit crashed before that, the record of the rollback shows it.
        """
        for attempt in range(_LATEST_RETRIES):
            if attempt:
                self._sleep(_LATEST_WAIT)
            newest, hinted = max(self._listed(), default=0), self.hinted_latest_id() or 0
            if hinted <= newest or ConsumerStore(self._file_io, self._paths).is_rolled_back(hinted):
                return newest or None
            if self._exists(hinted):
                return hinted
            if newest and is_left_by_rollback(self._file_io, self._paths, self.try_get(newest)):
                return newest
        remedy = f"or accept its loss with a rollback to snapshot {newest}" if newest else "or delete the hint"
        raise CorruptTableError(
            f"Table {self._paths.name}: {self._paths.snapshot_file(hinted)} is missing, but the LATEST hint names it. "
            f"Restore the file, {remedy}."
        )

    def _exists(self, snapshot_id: int) -> bool:
        return self._file_io.exists(self._paths.snapshot_file(snapshot_id))

    def _listed(self) -> Iterator[int]:
        for name in self._file_io.list(self._paths.snapshot_dir):
            number = snapshot_id_of(name)
            if number is not None:
                yield number

    def _hint(self, path: str) -> int | None:
        """Return a hint's id; None if it is missing, being replaced, unreadable or not an id."""
        try:
            return self._read_hint(path)
        except OSError:
            return None

    def _read_hint(self, path: str) -> int | None:
        """Return a hint's id; None if it is missing, being replaced or not an id. Raises the errors of the store."""
        try:
            text = self._file_io.read(path, _MAX_HINT_BYTES).decode("ascii").strip()
        except (FileNotFoundError, IsADirectoryError, UnicodeDecodeError, CorruptTableError):
            return None
        return int(text) if text.isdecimal() and 0 < int(text) <= _MAX_ID else None

    def _why_missing(self, snapshot_id: int) -> str:
        ids = self.ids()
        where = f"Table {self._paths.name}: snapshot {snapshot_id}"
        if not ids:
            return f"{where} does not exist. The table has no snapshots."
        reason = "has expired" if 0 < snapshot_id < ids[0] else "does not exist"
        return f"{where} {reason}. The table has snapshots {ids[0]} to {ids[-1]}."

    def _why_none_before(self, millis: int) -> str:
        where = f"Table {self._paths.name}: there is no snapshot at or before {_utc(millis)}."
        first = next((s for s in map(self.try_get, self.ids()) if s is not None), None)
        if first is None:
            return f"{where} The table has no snapshots."
        return f"{where} The earliest snapshot is {first.id}, committed at {_utc(first.time_millis)}."


def _json_text_needle(text: str) -> bytes | None:
    """Return bytes that each JSON document with this text contains; None if escapes allow several forms."""
    plain = text.isascii() and text.isprintable() and not set(text) & set("\"\\/<>&='")
    return text.encode("ascii") if plain and text else None


def _utc(millis: int) -> str:
    try:
        moment = datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=millis)
    except OverflowError:  # Spark has years below 1 and above 9999.
        return f"{millis} ms since 1970"
    return moment.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00") + " UTC"
