"""The sequential model of a table, and the checks after each change of the store.

Each snapshot that appears must show what its predecessor showed, changed by the one batch that its commit user and
identifier name, whole. Nothing may be lost that a retained snapshot names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lakelsm.errors import LakelsmError
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.paths import TablePaths, snapshot_id_of
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.snapshots.table_store import TableStore
from tests.simulation.memory_store import MemoryStore
from tests.simulation.row_files import DoubledRowError, State, StoredRow, data_path, merged, shown, stored_rows
from tests.simulation.version_entries import VersionEntries

#: What a batch makes of the rows before it.
Effect = Callable[[State], State]


class Violation(Exception):
    """A promise of the engine is broken."""


@dataclass
class Intent:
    """A batch that is committed under a user and identifier. ``published``: the uuids of its snapshots.

    ``effects`` has what the batch does, by the actor that wants it: what an update does follows from the rows that it
    read, and two actors may be at the same batch.
    """

    kind: CommitKind
    effects: dict[str, Effect] = field(default_factory=dict)
    published: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Version:
    """A snapshot that was published: the rows that it must show, and the files that it needs."""

    snapshot: Snapshot
    state: State
    files: frozenset[str]
    live: Mapping[str, ManifestEntry]


class Ledger:
    """Watches the store."""

    def __init__(self, store: MemoryStore, table: TableStore, stop: Callable[[BaseException], None]) -> None:
        self._store = store
        self._table = table
        self._stop = stop
        self._entries = VersionEntries(table)
        self.intents: dict[tuple[str, int], Intent] = {}
        self.versions: dict[str, Version] = {}
        #: The uuid of each snapshot file that is there, by path.
        self.kept: dict[str, str] = {}
        self._needed: dict[str, int] = {}

    # -- what actors tell --------------------------------------------------------------------------------------------

    def expect(self, actor: str, user: str, identifier: int, kind: CommitKind, effect: Effect) -> Intent:
        """An actor is about to commit a batch; told anew where it does something else now."""
        intent = self.intents.setdefault((user, identifier), Intent(kind))
        intent.effects[actor] = effect
        return intent

    def newest_id(self, paths: TablePaths) -> int | None:
        """The id of the newest snapshot of a branch."""
        prefix = f"{paths.snapshot_dir}/snapshot-"
        return max((int(path[len(prefix) :]) for path in self.kept if path.startswith(prefix)), default=None)

    def state_of(self, snapshot: Snapshot) -> State:
        """What a snapshot must show."""
        version = self.versions.get(snapshot.uuid or "")
        if version is None:
            raise Violation(f"snapshot {snapshot.id} with uuid {snapshot.uuid} was never published")
        return version.state

    def is_kept(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot is still retained as one, by any name."""
        return snapshot.uuid in self.kept.values()

    # -- Watch -------------------------------------------------------------------------------------------------------

    def created(self, path: str, data: bytes, before: bytes | None) -> None:
        """As `Watch.created`."""
        name = path.rsplit("/", 1)[1]
        number = snapshot_id_of(name)
        try:
            if number is not None and "/snapshot/" in path:
                self._published(path, number, data, before)
            elif before is not None and before != data and name not in ("LATEST", "EARLIEST"):
                raise Violation(f"{path} was written again with other content")
        except (Violation, DoubledRowError, LakelsmError) as error:
            self._stop(error)

    def deleted(self, path: str, data: bytes) -> None:
        """As `Watch.deleted`."""
        uuid = self.kept.pop(path, None)
        if uuid is not None:
            self._count(uuid, -1)
            return
        if self._needed.get(path):
            owners = [kept for kept, uuid in self.kept.items() if path in self.versions[uuid].files]
            self._stop(Violation(f"{path} was deleted, and {owners} need it"))

    def check_end(self) -> None:
        """Raise Violation unless everything that is retained is there, read by the engine's own reader."""
        for path, uuid in self.kept.items():
            version = self.versions[uuid]
            missing = [file for file in version.files if file not in self._store.files]
            if missing:
                raise Violation(f"{path} is there, and these of its files are not: {missing}")

    # -- checks ------------------------------------------------------------------------------------------------------

    def _published(self, path: str, number: int, data: bytes, before: bytes | None) -> None:
        if before is not None:
            if before != data:
                raise Violation(f"{path} was replaced by another snapshot")
            return
        snapshot = Snapshot.from_json(data, path)
        assert snapshot.uuid is not None
        if snapshot.uuid not in self.versions:
            self.versions[snapshot.uuid] = self._checked(path, number, snapshot)
        self.kept[path] = snapshot.uuid
        self._count(snapshot.uuid, 1)

    def _count(self, uuid: str, by: int) -> None:
        needed = self._needed
        for file in self.versions[uuid].files:
            needed[file] = needed.get(file, 0) + by

    def _checked(self, path: str, number: int, snapshot: Snapshot) -> Version:
        parent = self.kept.get(f"{path.rsplit('-', 1)[0]}-{number - 1}")
        if parent is None and number > 1:
            raise Violation(f"{path} was published, and there is no snapshot {number - 1}")
        before = None if parent is None else self.versions[parent]
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
            state = self._changed(where, snapshot, state, actual)
        if actual != state:
            raise Violation(f"{where} shows other rows than the batches in order: {_difference(actual, state)}")
        return Version(snapshot, state, frozenset(files), live)

    def _changed(self, where: str, snapshot: Snapshot, state: State, actual: State) -> State:
        intent = self.intents.get((snapshot.commit_user, snapshot.commit_identifier))
        if intent is None:
            raise Violation(f"{where} is of nobody")
        if snapshot.commit_kind not in (intent.kind, CommitKind.OVERWRITE):
            raise Violation(f"{where} should be an {intent.kind.value}")
        if self._stands(intent, snapshot):
            raise Violation(f"{where} was published before: {intent.published}")
        possible = [effect(state) for effect in intent.effects.values()]
        intent.published.append(snapshot.uuid or "")
        return next((after for after in possible if after == actual), possible[0])

    def _stands(self, intent: Intent, snapshot: Snapshot) -> bool:
        """Whether an earlier snapshot of the batch is there, or can be known by a later one of its user."""
        there = set(self.kept.values())
        return any(uuid in there for uuid in intent.published)

    def _check_entries(self, where: str, live: Iterable[ManifestEntry]) -> None:
        runs: dict[tuple[bytes, int, int], list[tuple[int, int]]] = {}
        for entry in live:
            rows, file = self._rows(entry), entry.file
            numbers = [row[2] for row in rows]
            said = file.row_count, file.min_sequence_number, file.max_sequence_number
            if said != (len(rows), min(numbers), max(numbers)):
                raise Violation(f"{where}: {file.file_name} holds other rows than its entry says")
            if file.level:
                runs.setdefault((entry.partition, entry.bucket, file.level), []).append((rows[0][1], rows[-1][1]))
        for (_, bucket, level), spans in runs.items():
            spans.sort()
            if any(one[1] >= other[0] for one, other in pairwise(spans)):
                raise Violation(f"{where}: files of level {level} of bucket {bucket} overlap: {spans}")

    def _rows(self, entry: ManifestEntry) -> Sequence[StoredRow]:
        return stored_rows(self._store.files[data_path(self._table.paths, entry)])


def _check_sequences(where: str, old: Mapping[str, ManifestEntry], live: Mapping[str, ManifestEntry]) -> None:
    """Numbers of new files are above those of all files that stay in their buckets."""
    highest: dict[tuple[bytes, int], int] = {}
    for entry in (entry for name, entry in old.items() if name in live):
        bucket = entry.partition, entry.bucket
        highest[bucket] = max(highest.get(bucket, -1), entry.file.max_sequence_number)
    for name, entry in live.items():
        known = highest.get((entry.partition, entry.bucket), -1)
        if name not in old and entry.file.min_sequence_number <= known:
            raise Violation(f"{where} numbers rows from {entry.file.min_sequence_number}, and {known} was used")


def _difference(actual: State, expected: State) -> str:
    keys = sorted({*actual, *expected})
    return ", ".join(
        f"{key} is {actual.get(key)} and should be {expected.get(key)}"
        for key in keys
        if actual.get(key) != expected.get(key)
    )
