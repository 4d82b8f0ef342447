"""A sequential model of a table, and the checks after each change of the store.

Each new snapshot must show the rows of its predecessor, changed by the whole batch of its commit user and identifier. No
file may be deleted that a retained snapshot, tag or branch names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lakelsm.errors import LakelsmError
from lakelsm.format.file_names import snapshot_id_of, tag_of
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import CommitKind, Snapshot, Tag
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.tag_store import HOLDING_TAG
from tests.simulation.memory_store import MemoryStore
from tests.simulation.row_files import DoubledRowError, State, StoredRow, data_path, merged, shown, stored_rows
from tests.simulation.version_entries import VersionEntries

#: Files that are overwritten, and contain only the latest value.
_REWRITTEN = ("LATEST", "EARLIEST", "lakelsm-rollback")
#: Returns the rows after a batch from the rows before it.
Effect = Callable[[State], State]


class Violation(Exception):
    """The engine broke a guarantee."""


@dataclass
class Intent:
    """A batch that is committed under a user and identifier. ``published``: the uuids of its snapshots.

    ``effects`` has the effect of the batch by actor: the effect of an update depends on the rows that the actor read, and
    two actors may run the same batch.
    """

    kind: CommitKind
    effects: dict[str, Effect] = field(default_factory=dict)
    published: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Version:
    """A published snapshot, with the rows that it must show and the files that it needs."""

    snapshot: Snapshot
    state: State
    files: frozenset[str]
    live: Mapping[str, ManifestEntry]


@dataclass(frozen=True)
class Suspect:
    """A snapshot published on one that a rollback or expiry removed. Its writer must remove it again."""

    reason: str
    writer: str


class Ledger:
    """Watches the store. ``rolls_back``: an actor runs rollbacks, so removed snapshots may be the base of others."""

    def __init__(
        self,
        store: MemoryStore,
        table: TableStore,
        stop: Callable[[BaseException], None],
        current: Callable[[], str],
        rolls_back: bool,
    ) -> None:
        self._store = store
        self._table = table
        self._stop = stop
        self._current = current
        self.rolls_back = rolls_back
        self._entries = VersionEntries(table)
        self.intents: dict[tuple[str, int], Intent] = {}
        self.versions: dict[str, Version] = {}
        self.suspects: dict[str, Suspect] = {}
        #: The uuids of existing snapshot and tag files, by path; and the paths whose needed files are protected.
        self.kept: dict[str, str] = {}
        self.protected: set[str] = set()
        #: Counts of done and failed actions, by kind.
        self.outcomes: Counter[str] = Counter()
        #: The number of snapshot and tag files that lost their protection, never had it, or were removed by their writer.
        self.losses = 0
        #: The minimum number of newest snapshots that expiry must keep, by snapshot directory.
        self.min_retained: dict[str, int] = {}
        self._expired: set[str] = set()
        self._announcements: dict[str, int] = {}
        self._needed: dict[str, int] = {}
        self._last: dict[str, str] = {}
        self._left_to_others: set[str] = set()
        #: Snapshots above a removed one, which a rollback has still to remove.
        self._cut_off: set[str] = set()

    # -- calls of actors ---------------------------------------------------------------------------------------------

    def expect(self, actor: str, user: str, identifier: int, kind: CommitKind, effect: Effect) -> Intent:
        """Record that an actor is about to commit a batch, and again if the effect has changed."""
        intent = self.intents.setdefault((user, identifier), Intent(kind))
        intent.effects[actor] = effect
        return intent

    def newest_id(self, paths: TablePaths) -> int | None:
        """Return the id of the newest snapshot of a branch."""
        prefix = f"{paths.snapshot_dir}/snapshot-"
        return max((int(path[len(prefix) :]) for path in self.kept if path.startswith(prefix)), default=None)

    def state_of(self, snapshot: Snapshot) -> State | None:
        """Return the rows that a snapshot must show; None if its writer must remove it."""
        if snapshot.uuid in self.suspects:
            return None
        version = self.versions.get(snapshot.uuid or "")
        if version is None:
            raise Violation(f"snapshot {snapshot.id} with uuid {snapshot.uuid} was never published")
        return version.state

    def is_protected(self, uuid: str | None) -> bool:
        """Return whether a retained file protects a snapshot."""
        return any(self.kept[path] == uuid for path in self.protected)

    def stands(self, intent: Intent, directory: str) -> bool:
        """Return whether a snapshot of a batch exists and is protected."""
        there = {self.kept[path] for path in self.protected if path.startswith(f"{directory}/")} - self._cut_off
        return any(uuid in there for uuid in intent.published)

    def kept_below(self, directory: str) -> list[str]:
        """Return the snapshot and tag files below a directory."""
        return [path for path in self.kept if path.startswith(f"{directory}/")]

    def check_acknowledged(self, where: str, snapshot: Snapshot) -> None:
        """Raise Violation for an acknowledged commit that its writer should have removed."""
        suspect = self.suspects.get(snapshot.uuid or "")
        if suspect is not None:
            raise Violation(f"{where} was acknowledged: {suspect.reason}")

    def record_fault(self, writer: str) -> None:
        """Record that a fault hit an actor, which may therefore never remove its suspect snapshots."""
        self._left_to_others.update(uuid for uuid, suspect in self.suspects.items() if suspect.writer == writer)

    def record_acknowledged(self, path: str, what: str) -> None:
        """Record that a tag or branch was acknowledged. Raise Violation if it exists without the files it needs."""
        uuid = self.kept.get(path)
        if uuid is None or path in self.protected or uuid in self.suspects:
            return
        missing = [file for file in self.versions[uuid].files if file not in self._store.files]
        if missing:
            raise Violation(f"{what} was acknowledged, but these of its files do not exist: {missing}")
        self._protect(path)

    @property
    def has_unacknowledged(self) -> bool:
        """Whether an unacknowledged tag or branch may name deleted files."""
        return any(path not in self.protected for path in self.kept)

    def unneeded(self) -> list[str]:
        """Return data and metadata files that no retained state names, not even in DELETE entries.

        A tag that was removed because expiry saw it leaves such entries until manifests are merged.
        """
        root, paths = self._table.paths.root, self._table.paths
        states = [self.versions[self.kept[path]].snapshot for path in self.protected]
        named = {data_path(paths, entry) for state in states for entry in self._entries.named(state)}
        return [
            path
            for path in self._store.files
            if not self._needed.get(path)
            and path not in named
            and path.startswith((f"{root}/manifest/", f"{root}/dt=", f"{root}/index/"))
        ]

    def kept_above(self, directory: str, number: int) -> list[str]:
        """Return the snapshot files of a directory with greater ids."""
        prefix = f"{directory}/snapshot-"
        return [path for path in self.kept if path.startswith(prefix) and int(path[len(prefix) :]) > number]

    def check_end(self) -> None:
        """Raise Violation unless all retained states are complete and have no gaps."""
        for path in self.protected:
            missing = [file for file in self.versions[self.kept[path]].files if file not in self._store.files]
            if missing:
                raise Violation(f"{path} exists, but these of its files do not: {missing}")
        for path, uuid in self.kept.items():
            is_holder = f"/tag-{HOLDING_TAG}" in path  # Its creator was killed; it expires, and no state relies on it.
            if uuid in self.suspects and uuid not in self._left_to_others and not is_holder:
                raise Violation(f"{path} was never removed by its writer: {self.suspects[uuid].reason}")

    # -- Watch -------------------------------------------------------------------------------------------------------

    def created(self, path: str, data: bytes, before: bytes | None) -> None:
        """See `Watch.created`."""
        name = path.rsplit("/", 1)[1]
        number = snapshot_id_of(name)
        try:
            if number is not None and "/snapshot/" in path:
                if before is not None and before != data:
                    raise Violation(f"{path} was replaced by another snapshot")
                if before is None:
                    self._published(path, number, data)
                    if self._announcements.get(path.rsplit("/", 1)[0]) == number:
                        self._announced(path.rsplit("/", 1)[0], number)
            elif tag_of(name) is not None and "/tag/" in path:
                self._forget(path)
                self._keep(path, Tag.from_json(data, path).snapshot.uuid or "")
            elif name == "EARLIEST" and "/snapshot/" in path:
                self._announced(path.rsplit("/", 1)[0], int(data))
            elif before is not None and before != data and name not in _REWRITTEN:
                raise Violation(f"{path} was written again with other content")
        except (Violation, DoubledRowError, LakelsmError) as error:
            self._stop(error)

    def deleted(self, path: str, data: bytes) -> None:
        """See `Watch.deleted`."""
        if path in self.kept:
            number = snapshot_id_of(path.rsplit("/", 1)[1])
            if number is not None and path in self.protected:
                self._cut_off.update(self.kept[above] for above in self.kept_above(path.rsplit("/", 1)[0], number))
            self._forget(path)
        elif self._needed.get(path):
            owners = [kept for kept in self.protected if path in self.versions[self.kept[kept]].files]
            self._stop(Violation(f"{path} was deleted, but {owners} need it"))

    # -- protection --------------------------------------------------------------------------------------------------

    def _keep(self, path: str, uuid: str) -> None:
        """Record that a file names a snapshot. It protects the needed files if another file protected them until now."""
        if uuid not in self.versions and uuid not in self.suspects:
            raise Violation(f"{path} names a snapshot that was never published")
        was_protected = self.is_protected(uuid)
        self.kept[path] = self._last[path] = uuid
        if was_protected:
            self._protect(path)
        else:
            self.losses += 1

    def _protect(self, path: str) -> None:
        self.protected.add(path)
        for file in self.versions[self.kept[path]].files:
            self._needed[file] = self._needed.get(file, 0) + 1

    def _forget(self, path: str) -> None:
        self._unprotect(path)
        if self.kept.pop(path, None) in self.suspects:
            self.losses += 1

    def _unprotect(self, path: str) -> None:
        if path in self.protected:
            self.losses += 1
            self.protected.remove(path)
            for file in self.versions[self.kept[path]].files:
                self._needed[file] -= 1

    def _announced(self, directory: str, earliest: int) -> None:
        """Record that expiry announced the deletion of the snapshots below an id."""
        prefix = f"{directory}/snapshot-"
        self._announcements[directory] = earliest
        if f"{prefix}{earliest}" not in self.kept:
            return  # Checked once the snapshot exists: a rollback writes EARLIEST before it restores a snapshot.
        ids = sorted(int(path[len(prefix) :]) for path in self.kept if path.startswith(prefix))
        min_kept = 1 if self.rolls_back else self.min_retained.get(directory)
        expiring = [number for number in ids if number < earliest and f"{prefix}{number}" in self.protected]
        if expiring and (min_kept is None or len(ids) - ids.index(expiring[-1]) - 1 < min_kept):
            raise Violation(f"snapshots {expiring} of {ids} expire, but at least {min_kept} must stay")
        for number in expiring:
            self._expired.add(self.kept[f"{prefix}{number}"])
            self._unprotect(f"{prefix}{number}")

    # -- checks of a snapshot ----------------------------------------------------------------------------------------

    def _published(self, path: str, number: int, data: bytes) -> None:
        snapshot = Snapshot.from_json(data, path)
        uuid = snapshot.uuid or ""
        if uuid in self.versions or uuid in self.suspects:
            self._keep(path, uuid)
            return
        before = self.kept.get(_numbered(path, number - 1))
        try:
            if before in self.suspects:
                raise Violation(f"{path} is based on a snapshot that its writer must remove")
            if before is None and number > 1:
                raise Violation(f"{path} was published, but snapshot {number - 1} does not exist")
            if before is not None and not snapshot.follows(self.versions[before].snapshot):
                raise Violation(f"{path} is not based on the existing snapshot {number - 1}")
            version = self._checked(path, number, snapshot, None if before is None else self.versions[before])
        except (Violation, DoubledRowError, LakelsmError) as error:
            if not self.rolls_back and not (number > 1 and before is None and self._expired):
                raise
            self.suspects[uuid] = Suspect(str(error), self._current())
            self.kept[path] = uuid
            return
        self.versions[uuid] = version
        if snapshot.commit_kind is not CommitKind.COMPACT:
            self.intents[snapshot.commit_user, snapshot.commit_identifier].published.append(uuid)
        self.kept[path] = self._last[path] = uuid
        self._protect(path)

    def _checked(self, path: str, number: int, snapshot: Snapshot, before: Version | None) -> Version:
        state: State = {} if before is None else before.state
        where = f"snapshot {number} ({snapshot.commit_kind.value} of {snapshot.commit_user}/{snapshot.commit_identifier})"
        live, metadata = self._entries.of(snapshot)
        paths = self._table.paths
        files = {data_path(paths, entry) for entry in live.values()} | {paths.manifest(name) for name in metadata}
        missing = [file for file in files if file not in self._store.files]
        if missing:
            raise Violation(f"{where} names files that do not exist: {missing}")
        self._check_entries(where, live.values())
        old = {} if before is None else before.live
        if snapshot.commit_kind is not CommitKind.COMPACT:
            _check_sequences(where, old, live)
        actual = shown(merged(row for entry in live.values() for row in self._rows(entry)))
        if snapshot.commit_kind is not CommitKind.COMPACT:
            state = self._changed(where, path.rsplit("/", 1)[0], snapshot, state, actual)
        if actual != state:
            raise Violation(f"{where} does not show the rows of the batches in order: {_difference(actual, state)}")
        return Version(snapshot, state, frozenset(files), live)

    def _changed(self, where: str, directory: str, snapshot: Snapshot, state: State, actual: State) -> State:
        intent = self.intents.get((snapshot.commit_user, snapshot.commit_identifier))
        if intent is None:
            raise Violation(f"{where} belongs to no batch")
        if snapshot.commit_kind not in (intent.kind, CommitKind.OVERWRITE):
            raise Violation(f"{where} should be an {intent.kind.value}")
        if self.stands(intent, directory):
            raise Violation(f"{where} was published before: {intent.published}")
        later = self._versions_of(directory, snapshot.commit_user, above=snapshot.commit_identifier)
        if later and not self.rolls_back and any(uuid in self._expired for uuid in intent.published):
            raise Violation(f"{where} was published before and has expired, as {later} of its user shows")
        possible = [effect(state) for effect in intent.effects.values()]
        return next((after for after in possible if after == actual), possible[0])

    def _versions_of(self, directory: str, user: str, above: int) -> list[int]:
        paths = (path for path in self.protected if path.startswith(f"{directory}/"))
        there = (self.versions[self.kept[path]].snapshot for path in paths)
        return [one.id for one in there if one.commit_user == user and one.commit_identifier > above]

    def _check_entries(self, where: str, live: Iterable[ManifestEntry]) -> None:
        runs: dict[tuple[bytes, int, int], list[tuple[int, int]]] = {}
        for entry in live:
            rows, file = self._rows(entry), entry.file
            numbers = [row[2] for row in rows]
            said = file.row_count, file.min_sequence_number, file.max_sequence_number
            if said != (len(rows), min(numbers), max(numbers)):
                raise Violation(f"{where}: {file.file_name} has other rows than its entry says")
            if file.level:
                runs.setdefault((entry.partition, entry.bucket, file.level), []).append((rows[0][1], rows[-1][1]))
        for (_, bucket, level), spans in runs.items():
            spans.sort()
            if any(one[1] >= other[0] for one, other in pairwise(spans)):
                raise Violation(f"{where}: files of level {level} of bucket {bucket} overlap: {spans}")

    def _rows(self, entry: ManifestEntry) -> Sequence[StoredRow]:
        return stored_rows(self._store.files[data_path(self._table.paths, entry)])


def _numbered(path: str, number: int) -> str:
    return f"{path.rsplit('-', 1)[0]}-{number}"


def _check_sequences(where: str, old: Mapping[str, ManifestEntry], live: Mapping[str, ManifestEntry]) -> None:
    """Check that sequence numbers of new files are above those of all files that stay in their buckets."""
    highest: dict[tuple[bytes, int], int] = {}
    for entry in (entry for name, entry in old.items() if name in live):
        bucket = entry.partition, entry.bucket
        highest[bucket] = max(highest.get(bucket, -1), entry.file.max_sequence_number)
    for name, entry in live.items():
        known = highest.get((entry.partition, entry.bucket), -1)
        if name not in old and entry.file.min_sequence_number <= known:
            raise Violation(f"{where} numbers rows from {entry.file.min_sequence_number}, but {known} is used already")


def _difference(actual: State, expected: State) -> str:
    keys = sorted({*actual, *expected})
    return ", ".join(
        f"{key} is {actual.get(key)} and should be {expected.get(key)}"
        for key in keys
        if actual.get(key) != expected.get(key)
    )
