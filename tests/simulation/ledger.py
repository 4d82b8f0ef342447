"""The sequential model of a table, and the checks after each change of the store.

Each snapshot that appears must show what its predecessor showed, changed by the one batch that its commit user and
identifier name, whole. Nothing may be lost that a retained snapshot, tag or branch names.
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

#: Files that hold what was last said, and are written over.
_REWRITTEN = ("LATEST", "EARLIEST", "lakelsm-rollback")
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


@dataclass(frozen=True)
class Suspect:
    """A snapshot that was published on one that is gone, by a rollback or by expiry: its writer is to take it back."""

    reason: str
    writer: str


class Ledger:
    """Watches the store. ``rolls_back``: some actor does so, and what it takes away may have been gone on from."""

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
        #: The uuid of each snapshot or tag file that is there, by path; and those of them that hold what they need.
        self.kept: dict[str, str] = {}
        self.firm: set[str] = set()
        #: How often each kind of action was done, and failed.
        self.outcomes: Counter[str] = Counter()
        #: How many snapshot and tag files ceased to be firm, never were, or were taken back.
        self.losses = 0
        #: What expiry may take, by the directory of snapshots: so many of the newest have to stay.
        self.retained_least: dict[str, int] = {}
        self._expired: set[str] = set()
        self._announcements: dict[str, int] = {}
        self._needed: dict[str, int] = {}
        self._last: dict[str, str] = {}
        self._left_to_others: set[str] = set()
        #: Snapshots that a rollback has yet to remove: one below them is gone.
        self._cut_off: set[str] = set()

    # -- what actors tell and ask ------------------------------------------------------------------------------------

    def expect(self, actor: str, user: str, identifier: int, kind: CommitKind, effect: Effect) -> Intent:
        """An actor is about to commit a batch; told anew where it does something else now."""
        intent = self.intents.setdefault((user, identifier), Intent(kind))
        intent.effects[actor] = effect
        return intent

    def newest_id(self, paths: TablePaths) -> int | None:
        """The id of the newest snapshot of a branch."""
        prefix = f"{paths.snapshot_dir}/snapshot-"
        return max((int(path[len(prefix) :]) for path in self.kept if path.startswith(prefix)), default=None)

    def state_of(self, snapshot: Snapshot) -> State | None:
        """What a snapshot must show; None where its writer is to take it back."""
        if snapshot.uuid in self.suspects:
            return None
        version = self.versions.get(snapshot.uuid or "")
        if version is None:
            raise Violation(f"snapshot {snapshot.id} with uuid {snapshot.uuid} was never published")
        return version.state

    def is_firm(self, uuid: str | None) -> bool:
        """Whether something retained holds a snapshot."""
        return any(self.kept[path] == uuid for path in self.firm)

    def stands(self, intent: Intent, directory: str) -> bool:
        """Whether a snapshot of a batch is there and stays."""
        there = {self.kept[path] for path in self.firm if path.startswith(f"{directory}/")} - self._cut_off
        return any(uuid in there for uuid in intent.published)

    def kept_below(self, directory: str) -> list[str]:
        """The snapshot and tag files below a directory."""
        return [path for path in self.kept if path.startswith(f"{directory}/")]

    def check_acknowledged(self, where: str, snapshot: Snapshot) -> None:
        """Raise Violation for a commit that is told to be done and should have been taken back."""
        suspect = self.suspects.get(snapshot.uuid or "")
        if suspect is not None:
            raise Violation(f"{where} was acknowledged: {suspect.reason}")

    def hurt(self, writer: str) -> None:
        """A fault hit an actor: it may never take back what it was to."""
        self._left_to_others.update(uuid for uuid, suspect in self.suspects.items() if suspect.writer == writer)

    def hold(self, path: str, what: str) -> None:
        """A tag or branch was acknowledged. Raises Violation unless it, if it is still there, has all that it needs."""
        uuid = self.kept.get(path)
        if uuid is None or path in self.firm or uuid in self.suspects:
            return
        missing = [file for file in self.versions[uuid].files if file not in self._store.files]
        if missing:
            raise Violation(f"{what} was acknowledged, and these of its files do not exist: {missing}")
        self._make_firm(path)

    @property
    def has_loose_ends(self) -> bool:
        """Whether a tag or branch that nobody was told of names what may be gone."""
        return any(path not in self.firm for path in self.kept)

    def unneeded(self) -> list[str]:
        """Data and metadata files that nothing retained names, be it to say that one is gone: a tag that expiry saw, and
        that was taken back then, leaves such ones until manifests are merged.
        """
        root, paths = self._table.paths.root, self._table.paths
        states = [self.versions[self.kept[path]].snapshot for path in self.firm]
        named = {data_path(paths, entry) for state in states for entry in self._entries.named(state)}
        return [
            path
            for path in self._store.files
            if not self._needed.get(path)
            and path not in named
            and path.startswith((f"{root}/manifest/", f"{root}/dt=", f"{root}/index/"))
        ]

    def kept_above(self, directory: str, number: int) -> list[str]:
        """The snapshot files of a directory with greater numbers."""
        prefix = f"{directory}/snapshot-"
        return [path for path in self.kept if path.startswith(prefix) and int(path[len(prefix) :]) > number]

    def check_end(self) -> None:
        """Raise Violation unless everything that is retained is there, without gaps."""
        for path in self.firm:
            missing = [file for file in self.versions[self.kept[path]].files if file not in self._store.files]
            if missing:
                raise Violation(f"{path} is there, and these of its files are not: {missing}")
        for path, uuid in self.kept.items():
            is_holder = f"/tag-{HOLDING_TAG}" in path  # Its maker died: it stays for its time, and nobody relies on it.
            if uuid in self.suspects and uuid not in self._left_to_others and not is_holder:
                raise Violation(f"{path} was never taken back: {self.suspects[uuid].reason}")

    # -- Watch -------------------------------------------------------------------------------------------------------

    def created(self, path: str, data: bytes, before: bytes | None) -> None:
        """As `Watch.created`."""
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
        """As `Watch.deleted`."""
        if path in self.kept:
            number = snapshot_id_of(path.rsplit("/", 1)[1])
            if number is not None and path in self.firm:
                self._cut_off.update(self.kept[above] for above in self.kept_above(path.rsplit("/", 1)[0], number))
            self._forget(path)
        elif self._needed.get(path):
            owners = [kept for kept in self.firm if path in self.versions[self.kept[kept]].files]
            self._stop(Violation(f"{path} was deleted, and {owners} need it"))

    # -- what holds what ---------------------------------------------------------------------------------------------

    def _keep(self, path: str, uuid: str) -> None:
        """A file names a snapshot. It holds what it needs from now on where something else did until now."""
        if uuid not in self.versions and uuid not in self.suspects:
            raise Violation(f"{path} names a snapshot that was never published")
        was_firm = self.is_firm(uuid)
        self.kept[path] = self._last[path] = uuid
        if was_firm:
            self._make_firm(path)
        else:
            self.losses += 1

    def _make_firm(self, path: str) -> None:
        self.firm.add(path)
        for file in self.versions[self.kept[path]].files:
            self._needed[file] = self._needed.get(file, 0) + 1

    def _forget(self, path: str) -> None:
        self._soften(path)
        if self.kept.pop(path, None) in self.suspects:
            self.losses += 1

    def _soften(self, path: str) -> None:
        if path in self.firm:
            self.losses += 1
            self.firm.remove(path)
            for file in self.versions[self.kept[path]].files:
                self._needed[file] -= 1

    def _announced(self, directory: str, earliest: int) -> None:
        """Expiry says which snapshots go: those before a number."""
        prefix = f"{directory}/snapshot-"
        self._announcements[directory] = earliest
        if f"{prefix}{earliest}" not in self.kept:
            return  # It counts when the snapshot is there: a rollback says so before it puts one back.
        ids = sorted(int(path[len(prefix) :]) for path in self.kept if path.startswith(prefix))
        least = 1 if self.rolls_back else self.retained_least.get(directory)
        going = [number for number in ids if number < earliest and f"{prefix}{number}" in self.firm]
        if going and (least is None or len(ids) - ids.index(going[-1]) - 1 < least):
            raise Violation(f"snapshots {going} of {ids} go, and at least {least} must stay")
        for number in going:
            self._expired.add(self.kept[f"{prefix}{number}"])
            self._soften(f"{prefix}{number}")

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
                raise Violation(f"{path} goes on from a snapshot that is to be taken back")
            if before is None and number > 1:
                raise Violation(f"{path} was published, and there is no snapshot {number - 1}")
            if before is not None and not snapshot.follows(self.versions[before].snapshot):
                raise Violation(f"{path} goes on from another snapshot than the {number - 1} that is there")
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
        self._make_firm(path)

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
            raise Violation(f"{where} shows other rows than the batches in order: {_difference(actual, state)}")
        return Version(snapshot, state, frozenset(files), live)

    def _changed(self, where: str, directory: str, snapshot: Snapshot, state: State, actual: State) -> State:
        intent = self.intents.get((snapshot.commit_user, snapshot.commit_identifier))
        if intent is None:
            raise Violation(f"{where} is of nobody")
        if snapshot.commit_kind not in (intent.kind, CommitKind.OVERWRITE):
            raise Violation(f"{where} should be an {intent.kind.value}")
        if self.stands(intent, directory):
            raise Violation(f"{where} was published before: {intent.published}")
        later = self._versions_of(directory, snapshot.commit_user, above=snapshot.commit_identifier)
        if later and not self.rolls_back and any(uuid in self._expired for uuid in intent.published):
            raise Violation(f"{where} was published before and has expired, as {later} of its user could tell")
        possible = [effect(state) for effect in intent.effects.values()]
        return next((after for after in possible if after == actual), possible[0])

    def _versions_of(self, directory: str, user: str, above: int) -> list[int]:
        paths = (path for path in self.firm if path.startswith(f"{directory}/"))
        there = (self.versions[self.kept[path]].snapshot for path in paths)
        return [one.id for one in there if one.commit_user == user and one.commit_identifier > above]

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


def _numbered(path: str, number: int) -> str:
    return f"{path.rsplit('-', 1)[0]}-{number}"


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
