"""Concurrent compactions of a table with deletion vectors: no masked row is lost, and no work is discarded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyroaring import BitMap

from lakelsm.commit.commit_message import CommitMessage
from lakelsm.commit.committer import Committer
from lakelsm.compact import remapped_vectors
from lakelsm.compact.bucket_vectors import write_vectors
from lakelsm.compact.compactor import Compactor
from lakelsm.errors import CorruptTableError
from lakelsm.format.data_file.vector_location import VectorLocation
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.plan.compaction_plan import CompactionScope, live_entries_of
from lakelsm.results import CompactionResult
from lakelsm.snapshots.deletion_vectors import DeletionVectors, deletion_vectors
from lakelsm.snapshots.manifest_scan import read_index_entries
from tests.chance import is_fixed, seeds
from tests.compact.local_table import LocalTable, Row

#: The number of old rows: files of single rows are small beside them, so compactions of level 0 do not rewrite them.
ROWS = 3000


class VectorTable(LocalTable):
    """A table whose readers merge nothing: the visible rows are read file by file."""

    def locations(self) -> list[tuple[ManifestEntry, VectorLocation | None]]:
        entries = self.live()
        return list(zip(entries, deletion_vectors(self.store, self.latest).of(entries)))

    def shown(self, entry: ManifestEntry, location: VectorLocation | None) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = self.stored(entry).to_pylist()
        if location is None:
            return rows
        masked = location.read(self.store.file_io.filesystem(), len(rows))
        return [row for at, row in enumerate(rows) if at not in masked]

    def visible(self) -> list[Row]:
        """Return the visible rows: the unmasked rows above level 0. Checks that each key occurs once."""
        names = self.store.schema.field_names
        found = [
            tuple(row[name] for name in names)
            for entry, location in self.locations()
            if entry.file.level > 0
            for row in self.shown(entry, location)
        ]
        doubled = [key for key, times in Counter(row[0] for row in found).items() if times > 1]
        assert not doubled, f"keys with two rows: {doubled[:5]}"
        return sorted(found)

    def check_index(self) -> None:
        """Check that the index names live files above level 0, each once, and that exactly its index files exist."""
        levels = {entry.file.file_name: entry.file.level for entry in self.live()}
        index = read_index_entries(self.store.file_io, self.store.paths, self.latest)
        named = [item.data_file_name for entry in index for item in entry.file.dv_ranges or ()]
        assert len(named) == len(set(named)) and all(levels.get(name, 0) > 0 for name in named)
        on_disk = {path.name for path in (self.root / "index").glob("*")}
        store = self.store
        known = (read_index_entries(store.file_io, store.paths, snapshot) for snapshot in store.snapshots.list())
        assert on_disk == {entry.file.file_name for entries in known for entry in entries}

    def replay(self, snapshot: Snapshot, full: bool = True) -> CompactionResult:
        """Commit a compaction that was planned on an older snapshot."""
        compactor = Compactor(self.runner, self.store, self.environment)
        return compactor.compact(CompactionScope(full), snapshot=snapshot)

    def during(self, action: Callable[[], object]) -> None:
        """Call ``action`` after the tasks of the next job, before its commit."""

        def run() -> None:
            self.runner.after_tasks = None
            action()

        self.runner.after_tasks = run


def rows(first: int, stop: int, value: str) -> list[Row]:
    return [(key, value) for key in range(first, stop)]


@pytest.fixture
def table(tmp_path: Path) -> VectorTable:
    """A table with old rows on the top level, half of them masked by newer rows above."""
    table = VectorTable(tmp_path / "t", deletion_vectors__enabled="true", write_only="true")
    table.write(*rows(0, ROWS, "old"))
    table.compact()
    table.write(*rows(0, ROWS // 2, "new"))
    assert table.compact(full=False).rows_masked == ROWS // 2
    assert table.levels() == [4, 5]
    return table


def expected(**changes: str) -> list[Row]:
    values = {key: "new" if key < ROWS // 2 else "old" for key in range(ROWS)}
    values.update({int(key[1:]): value for key, value in changes.items()})
    return sorted(values.items())


def mask(table: VectorTable) -> CompactionResult:
    """Update one key of each file above level 0."""
    table.write((7, "newest"), (ROWS - 7, "newest"))
    return table.compact(full=False)


def test_rows_that_were_masked_concurrently_are_masked_in_the_output_of_a_compaction(table: VectorTable) -> None:
    masking: list[CompactionResult] = []
    table.during(lambda: masking.append(mask(table)))
    result = table.compact()
    assert (masking[0].status, masking[0].rows_masked) == ("done", 2)
    assert (result.status, result.rows_remapped, result.files_written) == ("done", 2, 1)
    assert table.levels() == [3, 5]
    assert table.visible() == expected(k7="newest", k2993="newest")
    assert [location.cardinality for _, location in table.locations() if location is not None] == [2]
    table.check_index()


def test_masked_rows_of_a_concurrently_rewritten_file_are_masked_in_its_successor(table: VectorTable) -> None:
    planned = table.latest
    table.write((7, "newest"), (ROWS - 7, "newest"))
    rewritten: list[CompactionResult] = []
    table.during(lambda: rewritten.append(table.replay(planned)))
    result = table.compact(full=False)
    assert (rewritten[0].status, rewritten[0].rows_remapped) == ("done", 0)
    assert (result.status, result.rows_masked, result.rows_remapped) == ("done", 2, 2)
    assert table.levels() == [3, 5]
    assert table.visible() == expected(k7="newest", k2993="newest")
    table.check_index()


def test_a_bucket_with_another_index_file_and_the_same_vectors_is_committed_again(table: VectorTable) -> None:
    planned = table.latest
    table.write((7, "newest"))
    (upper,) = (entry for entry, _ in table.locations() if entry.file.level == 4)

    def rewrite_the_top() -> None:
        # Like a compaction of the top level alone: the unmasked old rows in a new file.
        assert table.replay(planned).status == "done"

    table.during(rewrite_the_top)
    assert table.compact(full=False).rows_remapped == 1
    assert upper.file.file_name not in table.names()
    assert table.visible() == expected(k7="newest")
    table.check_index()


def test_only_masked_rows_of_rewritten_files_move(tmp_path: Path) -> None:
    options = {"deletion_vectors__enabled": "true", "write_only": "true", "target_file_size": "4 kb"}
    table = VectorTable(tmp_path / "t", **options)
    for half in (rows(0, ROWS // 2, "old"), rows(ROWS // 2, ROWS, "old")):
        table.write(*half)
        table.compact()
    table.delete((3, ""))
    table.compact(full=False)
    planned, (first, second) = table.latest, sorted(table.live(), key=lambda entry: entry.file.min_key)
    assert table.levels() == [5, 5], "a delete that masks its row leaves no file"
    table.write((7, "newest"), (ROWS - 7, "newest"))

    def rewrite() -> None:
        assert (table.replay(planned).status, first.file.file_name in table.names()) == ("done", False)

    table.during(rewrite)
    result = table.compact(full=False)
    assert (result.status, result.rows_masked, result.rows_remapped) == ("done", 2, 1)
    masked = {entry.file.file_name: location.cardinality for entry, location in table.locations() if location is not None}
    assert len(masked) == 2 and masked[second.file.file_name] == 1
    found = dict(rows(0, ROWS, "old")) | {7: "newest", ROWS - 7: "newest"}
    assert table.visible() == [(key, value) for key, value in found.items() if key != 3]
    table.check_index()


@pytest.mark.parametrize("expired", [True, False])
def test_a_missing_file_of_the_plan_is_a_conflict_if_its_snapshot_expired(
    table: VectorTable, expired: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, old = table.latest, [table.path_of(entry) for entry in table.live()]
    base = table.write((7, "newest"))

    def expire(*arguments: Any) -> list[ManifestEntry]:
        for path in old:
            path.unlink()
        if expired:
            Path(table.store.paths.snapshot_file(base.id)).unlink()
        return live_entries_of(*arguments)

    monkeypatch.setattr(remapped_vectors, "live_entries_of", expire)
    table.during(lambda: table.replay(planned))
    if expired:
        assert table.compact(full=False).status == "conflict"
    else:
        with pytest.raises(CorruptTableError, match=r"does not exist"):
            table.compact(full=False)
    table.visible()


def test_a_row_that_another_engine_unmasks_is_a_conflict(table: VectorTable) -> None:
    def show_again() -> None:
        store, entries = table.store, table.live()
        (masked,) = (entry for entry, location in table.locations() if location is not None)
        bucket = (masked.partition, masked.bucket)
        names = AttemptNames.new(table.environment.new_uuid)
        positions = {bucket: {masked.file.file_name: BitMap([0])}}
        vectors = write_vectors(store, DeletionVectors(), entries, [bucket], positions=positions, names=names)
        message = CommitMessage(index_adds=vectors.adds, base_snapshot_id=table.latest.id)
        Committer(store).commit(CommitKind.COMPACT, message, "another engine")

    table.during(show_again)
    names = table.names()
    assert table.compact().status == "conflict"
    assert table.names() == names
    table.check_index()


def test_of_two_compactions_that_mask_rows_of_one_file_one_wins_and_no_row_is_lost(table: VectorTable) -> None:
    table.write((7, "newest"))

    def other() -> None:
        table.write((8, "newest"))
        assert table.compact(full=False).status == "done"

    table.during(other)
    before = {path.name for path in (table.root / "index").glob("*")}
    assert table.compact(full=False).status == "conflict"
    assert len({path.name for path in (table.root / "index").glob("*")} - before) == 1, "only the winner's exists"
    assert table.visible() == expected(k7="newest", k8="newest")
    table.check_index()
    assert table.compact(full=False).status == "nothing"


def test_a_lost_compaction_is_repeated_on_the_newest_snapshot(table: VectorTable) -> None:
    planned = table.write((7, "newest"))
    table.write((8, "newest"))

    def other() -> None:
        assert table.replay(planned, full=False).status == "done"

    table.during(other)
    assert table.compact(full=False).status == "conflict"
    assert table.visible() == expected(k7="newest")
    assert table.compact(full=False).status == "done"
    assert table.visible() == expected(k7="newest", k8="newest")
    table.check_index()


def test_a_compaction_that_loses_repeatedly_remaps_its_masked_rows_each_time(table: VectorTable) -> None:
    rounds = 3

    def masking(left: int) -> None:
        table.write((left, "newest"))
        assert table.compact(full=False).status == "done"
        if left:
            table.during(lambda: masking(left - 1))

    table.during(lambda: masking(rounds))
    result = table.compact()
    assert result.status == "done" and result.rows_remapped > rounds
    assert table.visible() == expected(**{f"k{key}": "newest" for key in range(rounds + 1)})
    table.check_index()


def test_remapping_ends_after_as_many_retries_as_commits_have(tmp_path: Path) -> None:
    table = VectorTable(tmp_path / "t", deletion_vectors__enabled="true", write_only="true", commit__max_retries="0")
    table.write(*rows(0, ROWS, "old"))
    table.compact()
    table.write(*rows(0, ROWS // 2, "new"))
    table.compact(full=False)
    table.during(lambda: mask(table))
    assert table.compact().status == "conflict"
    assert table.visible() == expected(k7="newest", k2993="newest")
    table.check_index()


def test_a_compaction_during_an_overwrite_loses_and_leaves_no_file(table: VectorTable) -> None:
    table.write((7, "newest"))
    table.during(lambda: table.overwrite((1, "overwritten")))
    assert table.compact(full=False).status == "conflict"
    assert table.visible() == [(1, "overwritten")] and table.latest.commit_kind is CommitKind.OVERWRITE
    table.check_index()


def test_keys_of_several_columns_in_another_order_than_the_columns_are_found(tmp_path: Path) -> None:
    columns = "b STRING NOT NULL, v STRING, a INT NOT NULL"
    table = VectorTable(tmp_path / "t", columns, ("a", "b"), deletion_vectors__enabled="true", write_only="true")
    old = [(f"b{key % 7}", "old", key) for key in range(ROWS)]
    table.write(*old)
    table.compact()
    table.write(*((b, "new", a) for b, _, a in old[: ROWS // 2]))
    assert table.compact(full=False).rows_masked == ROWS // 2
    planned, newest = table.latest, [(old[at][0], "newest", at) for at in (7, ROWS - 7)]
    table.write(*newest)
    table.during(lambda: table.replay(planned))
    assert table.compact(full=False).rows_remapped == 2
    found = [row for entry, location in table.locations() for row in table.shown(entry, location)]
    assert len(found) == ROWS and Counter(row["v"] for row in found)["newest"] == 2
    table.check_index()


#: The seeds of histories; `make fuzz` uses more and other seeds.
_RACES = seeds(3)


class Race:
    """A history of writes, deletes and compactions, and of commits during the compactions."""

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self.table = VectorTable(root, deletion_vectors__enabled="true", write_only="true", bucket="2")
        self.wanted: dict[int, str] = {}
        self.remapped = 0

    def decides(self, odds: float) -> bool:
        return bool(self.chance.random() < odds)

    def write(self, value: str, max_rows: int) -> None:
        keys = [int(key) for key in self.chance.choice(4000, self.chance.integers(1, max_rows), replace=False)]
        values = [(key, value) for key in keys]
        if self.decides(0.2):
            self.table.delete(*values)
            for key in keys:
                self.wanted.pop(key, None)
        else:
            self.table.write(*values)
            self.wanted.update(values)

    def compact(self, planned: Snapshot, full: bool) -> None:
        self.remapped += self.table.replay(planned, full).rows_remapped

    def step(self, at: int) -> None:
        planned = self.table.latest
        if self.decides(0.6):
            self.write(f"{at}", 1500)
        if self.decides(0.4):
            self.compact(self.table.latest, full=False)
        self.table.during(lambda: self.concurrently(planned, f"{at} concurrently"))
        self.compact(self.table.latest if self.decides(0.8) else planned, full=self.decides(0.5))
        self.table.runner.after_tasks = None
        self.table.visible()
        self.table.check_index()

    def concurrently(self, planned: Snapshot, value: str) -> None:
        if self.decides(0.5):
            self.compact(planned, full=self.decides(0.7))
        if self.decides(0.7):
            self.write(value, 9)
            self.compact(self.table.latest, full=False)


@pytest.mark.property
def test_no_key_has_two_rows_and_no_row_is_lost_in_any_history_of_races(tmp_path: Path) -> None:
    remapped = 0
    for seed in _RACES:
        race = Race(tmp_path / f"{seed}", seed)
        race.write("first", 3999)
        for at in range(8):
            race.step(at)
        for full in (False, True):
            race.compact(race.table.latest, full)
            assert race.table.visible() == sorted(race.wanted.items()), f"seed {seed}"
            race.table.check_index()
        remapped += race.remapped
    assert remapped > 5 or not is_fixed()
