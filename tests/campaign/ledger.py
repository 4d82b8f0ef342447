"""The expected content of a table, computed from batches: each snapshot is its base snapshot and one batch.

A snapshot is identified by the unique name of its delta list, also if a branch or a rollback restores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.snapshots.table_store import TableStore
from tests.campaign.processes import CampaignError

#: Values by partition and key.
Rows = dict[tuple[str, int], int]
#: A batch: the commit user and the batch id.
Key = tuple[str, int]


@dataclass(frozen=True)
class Layout:
    """A kind of table."""

    name: str
    options: Mapping[str, str]

    @property
    def sums(self) -> bool:
        return self.options.get("merge-engine") == "aggregation"


LAYOUTS = (
    Layout("vectors", {"bucket": "2", "changelog-producer": "lookup", "deletion-vectors.enabled": "true"}),
    Layout("sums", {"bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}),
    Layout("dynamic", {"bucket": "-1", "dynamic-bucket.target-row-num": "20", "changelog-producer": "input"}),
    Layout("plain", {"bucket": "2", "file-index.bloom-filter.columns": "k", "file-index.in-manifest-threshold": "1 b"}),
)


@dataclass(frozen=True)
class Batch:
    """``kind``: 'upsert', 'delete' (of the keys), 'overwrite' (of the partition) or 'drop' (of the partition)."""

    user: str
    id: int
    kind: str
    rows: tuple[tuple[str, int, int], ...] = ()
    partition: str = ""

    @property
    def key(self) -> Key:
        return self.user, self.id

    def on(self, rows: Rows, sums: bool) -> Rows:
        """Return the rows after the batch."""
        if self.kind in ("overwrite", "drop"):
            rows = {key: value for key, value in rows.items() if key[0] != self.partition}
        after = dict(rows)
        for p, k, v in self.rows:
            if self.kind == "delete":
                after.pop((p, k), None)
            else:
                after[p, k] = v + (after.get((p, k), 0) if sums else 0)
        return after


@dataclass(frozen=True)
class State:
    """The expected content of a snapshot."""

    snapshot_id: int
    rows: Rows
    batches: frozenset[Key]


NOTHING = State(0, {}, frozenset())


@dataclass
class Ledger:
    """``required``: acknowledged batches that the newest snapshot must have; ``tried``: those that it may have.

    ``loose``: a killed operation may have skipped snapshot ids, so ids need not be consecutive.
    ``left_behind``: the newest snapshot when a kill left an outdated hint.
    """

    layout: Layout
    batches: dict[Key, Batch] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
    required: set[Key] = field(default_factory=set)
    tried: set[Key] = field(default_factory=set)
    tags: dict[str, State] = field(default_factory=dict)
    maybe_tags: set[str] = field(default_factory=set)
    branches: dict[str, State] = field(default_factory=dict)
    maybe_branches: set[str] = field(default_factory=set)
    latest: State = NOTHING
    loose: bool = False
    left_behind: State | None = None

    def expect(self, batch: Batch) -> None:
        """Note a batch that will be tried."""
        self.batches[batch.key] = batch
        self.tried.add(batch.key)

    def acknowledged(self, key: Key, snapshot_id: int | None) -> None:
        """Note an acknowledged batch. It has no snapshot if it changed nothing, for example as a replay."""
        if snapshot_id is not None:
            self.tried.discard(key)
            self.required.add(key)

    def published(self, kind: CommitKind, key: Key) -> None:
        """Note a published snapshot: its batch is committed, although it is not acknowledged yet."""
        if kind not in (CommitKind.COMPACT, CommitKind.ANALYZE):
            self.acknowledged(key if key in self.batches else (key[0], -1), 0)

    def follow(self, store: TableStore) -> list[State]:
        """Return the states of the retained snapshots of a branch, oldest first.

        Raises CampaignError for a snapshot of an unknown batch, and for one that has a batch twice.
        """
        found: list[State] = []
        for snapshot in store.snapshots.list():
            if found and snapshot.id != found[-1].snapshot_id + 1 and not self.loose:
                raise CampaignError(f"snapshot {snapshot.id} follows on {found[-1].snapshot_id}")
            name = snapshot.delta_manifest_list
            if name not in self.states:
                before = found[-1] if found else NOTHING
                if snapshot.id != before.snapshot_id + 1:
                    raise CampaignError(f"the base of snapshot {snapshot.id} is unknown")
                self.states[name] = self._after(before, snapshot)
            state = self.states[name]
            if state.snapshot_id != snapshot.id:
                raise CampaignError(f"snapshot {snapshot.id} has the content of {state.snapshot_id}")
            found.append(state)
        return found

    def _after(self, before: State, snapshot: Snapshot) -> State:
        after = replace(before, snapshot_id=snapshot.id)
        if snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.ANALYZE):
            return after
        batch = self._batch_of(snapshot)
        if batch.key in before.batches:
            raise CampaignError(f"snapshot {snapshot.id} has {batch.key} twice")
        rows = batch.on(before.rows, self.layout.sums)
        return replace(after, rows=rows, batches=before.batches | {batch.key})

    def _batch_of(self, snapshot: Snapshot) -> Batch:
        key = (snapshot.commit_user, snapshot.commit_identifier)
        batch = self.batches.get(key) or self.batches.get((snapshot.commit_user, -1))  # A drop has no batch id.
        if batch is None:
            raise CampaignError(f"snapshot {snapshot.id} is of {key}, which no process has tried")
        return batch

    def check_batches(self, latest: State) -> None:
        """The newest snapshot has every acknowledged batch, and none that was not tried."""
        missing = self.required - latest.batches
        if missing:
            raise CampaignError(f"lost: {sorted(missing)}")
        extra = latest.batches - self.required - self.tried
        if extra:
            raise CampaignError(f"not tried, or rolled back: {sorted(extra)}")

    def may_become(self, state: State) -> None:
        """Note the start of an operation that sets the table to another state: until its end, both states are valid."""
        self.tried |= self.required | state.batches
        self.required &= state.batches
        self.maybe_tags |= {name for name, tag in self.tags.items() if tag.snapshot_id > state.snapshot_id}
        self.loose = True

    def became(self, state: State) -> None:
        """Note the end of the operation."""
        self.required = set(state.batches)
        self.tried.clear()
        self.loose = False
