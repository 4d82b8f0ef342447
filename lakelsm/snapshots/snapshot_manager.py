"""Finding and reading snapshots (docs/format.md 4.2). Hints may be missing, behind or ahead."""

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

#: So many ids after a hint are probed one by one before the directory is listed.
_PROBES = 8
#: Expiry or a rollback can remove a snapshot between the look-up of its id and its reading.
_LATEST_RETRIES = 5
#: Seconds between looks at a LATEST hint that names a later snapshot than there is.
_LATEST_WAIT = 0.1
#: Sizes that no snapshot, tag or hint file has.
MAX_SNAPSHOT_BYTES = 16 << 20
_MAX_HINT_BYTES = 64
#: Ids are of 64 bits.
_MAX_ID = (1 << 63) - 1


class SnapshotManager:
    """Reads the ``snapshot/`` directory of one branch of a table. Caches nothing."""

    def __init__(self, file_io: FileIO, paths: TablePaths, sleep: Callable[[float], None] = SYSTEM.sleep) -> None:
        self._file_io = file_io
        self._paths = paths
        self._sleep = sleep

    def latest_id(self) -> int | None:
        """Return the newest snapshot's id, or None for a table without snapshots.

        The LATEST hint counts only when its snapshot exists; newer ids are probed, else all are listed. Raises
        CorruptTableError where the hint names a later snapshot than there is: the newest file is missing.
        """
        hint = self._hint(self._paths.latest_hint)
        if hint is not None and self._exists(hint):
            for candidate in range(hint, hint + _PROBES):
                if not self._exists(candidate + 1):
                    return candidate
        return self._listed_newest()

    def earliest_id(self) -> int | None:
        """Return the oldest snapshot's id that is still there, or None for a table without snapshots."""
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

        ``known`` is an id that was the newest earlier: if it still exists, the hint is not read.
        Errors as `latest_id`.
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
            f"Table {self._paths.name}: its newest snapshot {newest} disappears whenever it is read"
        )

    def get(self, snapshot_id: int) -> Snapshot:
        """Return one snapshot. Raises SnapshotNotFoundError, which says whether it expired and which snapshots exist, and
        CorruptTableError where its file is missing between others.
        """
        snapshot = self.try_get(snapshot_id)
        if snapshot is None:
            ids = self.ids()
            if ids and ids[0] < snapshot_id < ids[-1]:
                self._check_missing(snapshot_id, ids[-1])
            raise SnapshotNotFoundError(self._why_missing(snapshot_id))
        return snapshot

    def check_complete(self) -> None:
        """Raise CorruptTableError where a snapshot file is missing: one between others, or the newest that LATEST names.

        What expired, and what a rollback removed or removes, is not missing.
        """
        self._listed_newest()
        for before, after in pairwise(self.ids()):
            for snapshot_id in range(before + 1, after):
                self._check_missing(snapshot_id, after)

    def _check_missing(self, snapshot_id: int, later: int) -> None:
        """Raise CorruptTableError where a snapshot below a later one is not there, unless it expired or was rolled back.

        A rollback points LATEST below what it removes. What is left above then was published beside it, and goes.
        """
        hinted = self.hinted_latest_id()
        is_named = hinted is None or hinted >= snapshot_id
        if self._exists(snapshot_id) or not is_named or self.is_expiring(snapshot_id):
            return
        if not ConsumerStore(self._file_io, self._paths).is_rolled_back(later) and self._exists(later):
            raise CorruptTableError(
                f"Table {self._paths.name}: {self._paths.snapshot_file(snapshot_id)} is missing, and later snapshots are "
                "there. Restore the file, or roll the table back to an older snapshot, which removes the later ones."
            )

    def try_get(self, snapshot_id: int) -> Snapshot | None:
        """Return one snapshot, or None if it does not exist. Raises CorruptTableError when it is damaged."""
        stored = self._stored(snapshot_id)
        if stored is None:
            return None
        path, data = stored
        snapshot = Snapshot.from_json(data, path)
        if snapshot.id != snapshot_id:
            raise CorruptTableError(f"{path} holds snapshot {snapshot.id}: restore the file.")
        return snapshot

    def list(self) -> Sequence[Snapshot]:
        """Return all snapshots, ascending by id; those that expire during the call are left out."""
        found = (self.try_get(snapshot_id) for snapshot_id in self.ids())
        return [snapshot for snapshot in found if snapshot is not None]

    def at_or_before(self, millis: int) -> Snapshot:
        """Return the newest snapshot committed at or before a time (epoch millis), by bisection.

        Raises SnapshotNotFoundError where the table has none, or only newer ones.
        """
        best = newest_at(millis, self.ids(), self.try_get)
        if best is None:
            raise SnapshotNotFoundError(self._why_none_before(millis))
        return best

    def of_user(self, commit_user: str, below: int | None = None) -> Iterator[Snapshot]:
        """Yield the retained snapshots of a commit user, newest first; those with ids under ``below``."""
        needle = _json_text_needle(commit_user)
        for path, data in self._descending(below):
            if needle is not None and needle not in data:
                continue
            snapshot = Snapshot.from_json(data, path)
            if snapshot.commit_user == commit_user:
                yield snapshot

    def write_latest_hint(self, published: Snapshot) -> None:
        """Point LATEST at a snapshot that has just been published.

        As in Java it is not looked at before: one that goes back a little costs readers some probes. Where a rollback
        removed the snapshot since it was published, the hint is set to the newest one in the history: a hint that is
        too high is taken for damage. Raises what the file system raises; the snapshot is visible without the hint too.
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
        """The newest snapshot that goes on from the one before it; None for a table without snapshots.

        LATEST names no other: the writer of such a one removes it.
        """
        found = map(self.try_get, reversed(self.ids()))
        return next((snapshot for snapshot in found if snapshot is not None and self.is_linked(snapshot)), None)

    def hinted_latest_id(self) -> int | None:
        """The id that the LATEST hint names, whether or not there is such a snapshot.

        Raises what the store raises: a hint that cannot be read is not a missing one.
        """
        return self._read_hint(self._paths.latest_hint)

    def hinted_earliest_id(self) -> int | None:
        """The oldest snapshot's id, which EARLIEST then records, so that no later call lists for it."""
        hint = self._hint(self._paths.earliest_hint)
        if hint is not None and self._exists(hint):
            return hint
        found = min(self._listed(), default=None)
        if found is not None:  # Never over what an expiry announces at this moment.
            self._file_io.create_if_absent(self._paths.earliest_hint, str(found).encode("ascii"))
        return found

    def announce_earliest(self, snapshot_id: int) -> None:
        """Announce that all snapshots below this one expire, before any deletion. EARLIEST never goes back.

        A new reference to an old snapshot (a tag) checks `is_expiring` afterwards, so at least one sees the other.
        """
        hint = self._read_hint(self._paths.earliest_hint)
        if hint is None or hint < snapshot_id or not self._exists(hint):
            self._file_io.write(self._paths.earliest_hint, str(snapshot_id).encode("ascii"))

    def is_expiring(self, snapshot_id: int) -> bool:
        """Whether an existing snapshot is expiring: EARLIEST names a later one, which exists.

        Raises what the store raises: an EARLIEST that cannot be read may announce the expiry. Where what it names is
        not there, it is read again: the next expiry moves EARLIEST on before it removes that one, a rollback does not.
        """
        known, earliest = None, self._read_hint(self._paths.earliest_hint)
        while earliest is not None and snapshot_id < earliest and earliest != known:
            if self._exists(earliest):
                return True
            known, earliest = earliest, self._read_hint(self._paths.earliest_hint)
        return False

    def withdraw_earliest(self, snapshot_id: int) -> None:
        """Take an announcement back that names a later snapshot than this one: what it named was rolled back."""
        hint = self._read_hint(self._paths.earliest_hint)
        if hint is not None and hint > snapshot_id:
            self._file_io.write(self._paths.earliest_hint, str(min(self._listed(), default=1)).encode("ascii"))

    def record_rollback(self, target: Snapshot) -> None:
        """Record that all snapshots above ``target`` were removed, before the rollback's consumer is deleted."""
        record_rollback(self._file_io, self._paths, target)

    def is_linked(self, snapshot: Snapshot) -> bool:
        """Whether the base of a snapshot that was read is the one before it, or has expired.

        Otherwise a rollback removed its base. It is not in the history of the table, though it may seem to be if ids are
        used again. Its writer removes it, unless the writer crashed. A snapshot can only have been built on if it was
        published before the rollback looked for the last time, and then the rollback removes both. So a commit that
        checks this of its base first never builds on an orphaned snapshot.
        """
        if snapshot.id == 1:
            return True
        before = self.try_get(snapshot.id - 1)
        if before is not None and snapshot.follows(before):
            return True
        if self.is_expiring(snapshot.id - 1):  # Another may be there that was published under an id that had expired.
            return True
        return before is None and self.earliest_id() == snapshot.id

    def is_kept(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot that was read still exists with its files: it does not expire, and it was not published
        on a snapshot that was rolled back. Its writer removes such a snapshot before LATEST names it.
        """
        if not snapshot.matches(self.try_get(snapshot.id)) or self.is_expiring(snapshot.id):
            return False
        return self.is_linked(snapshot) or (self.hinted_latest_id() or 0) >= snapshot.id

    def _newest_from(self, snapshot_id: int, probes: int) -> Snapshot | None:
        """The newest of the snapshots from an id on, by probing it and the next ``probes``."""
        snapshot = self.try_get(snapshot_id)
        for _ in range(probes if snapshot is not None else 0):
            assert snapshot is not None
            newer = self.try_get(snapshot.id + 1)
            if newer is None:
                return snapshot
            snapshot = newer
        return None

    def _descending(self, below: int | None) -> Iterator[tuple[str, bytes]]:
        """Paths and contents of the snapshots under an id, newest first. Below one that is missing they are listed."""
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
        """The path and the content of a snapshot file; None if it does not exist."""
        path = self._paths.snapshot_file(snapshot_id)
        try:
            return path, self._file_io.read(path, MAX_SNAPSHOT_BYTES)
        except FileNotFoundError:
            return None

    def _listed_newest(self) -> int | None:
        """The largest id that is listed. Raises CorruptTableError where LATEST names a larger one.

        LATEST is written after a snapshot is published, and before a rollback removes any. Only a commit beside a
        rollback may write it too late: the rollback, whose consumer still exists, or the commit then corrects it.
        If the commit crashed before that, the rollback's record shows it.
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
        remedy = f"or accept its loss: roll back to snapshot {newest}" if newest else "or delete the hint"
        raise CorruptTableError(
            f"Table {self._paths.name}: {self._paths.snapshot_file(hinted)} is missing, which the LATEST hint names; the "
            f"newest snapshot that is there is {newest or 'none'}. Restore the file, {remedy}."
        )

    def _exists(self, snapshot_id: int) -> bool:
        return self._file_io.exists(self._paths.snapshot_file(snapshot_id))

    def _listed(self) -> Iterator[int]:
        for name in self._file_io.list(self._paths.snapshot_dir):
            number = snapshot_id_of(name)
            if number is not None:
                yield number

    def _hint(self, path: str) -> int | None:
        """Return a hint's number; None when it is missing, being replaced, no number or no readable file."""
        try:
            return self._read_hint(path)
        except OSError:
            return None

    def _read_hint(self, path: str) -> int | None:
        """Return a hint's number; None when it is missing, being replaced or no number. Raises what the store raises."""
        try:
            text = self._file_io.read(path, _MAX_HINT_BYTES).decode("ascii").strip()
        except (FileNotFoundError, IsADirectoryError, UnicodeDecodeError, CorruptTableError):
            return None
        return int(text) if text.isdecimal() and 0 < int(text) <= _MAX_ID else None

    def _why_missing(self, snapshot_id: int) -> str:
        ids = self.ids()
        where = f"table {self._paths.name}"
        if not ids:
            return f"snapshot {snapshot_id}: {where} has no snapshots yet"
        reason = "has expired" if 0 < snapshot_id < ids[0] else "does not exist"
        return f"snapshot {snapshot_id} of {where} {reason}; available: {ids[0]} to {ids[-1]}"

    def _why_none_before(self, millis: int) -> str:
        where = f"table {self._paths.name}"
        first = next((s for s in map(self.try_get, self.ids()) if s is not None), None)
        if first is None:
            return f"no snapshot at or before {_utc(millis)}: {where} has no snapshots yet"
        return (
            f"no snapshot of {where} at or before {_utc(millis)}; the oldest that is kept is "
            f"{first.id}, committed at {_utc(first.time_millis)}"
        )


def _json_text_needle(text: str) -> bytes | None:
    """Bytes that any JSON spelling of a text must hold; None when escapes could spell it in several ways."""
    plain = text.isascii() and text.isprintable() and not set(text) & set("\"\\/<>&='")
    return text.encode("ascii") if plain and text else None


def _utc(millis: int) -> str:
    try:
        moment = datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=millis)
    except OverflowError:  # Spark's years go far below 1 and above 9999.
        return f"{millis} ms since 1970"
    return moment.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00") + " UTC"
