"""`Table.compact` and the compaction that follows a write, on both engines."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lakelsm import Table
from lakelsm.compact import compactor
from lakelsm.compact.rewrite_task import RewriteTask
from lakelsm.errors import CorruptTableError, InvalidInputError
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from lakelsm.plan.compaction_plan import CompactionScope
from lakelsm.results import CompactionResult
from lakelsm.schema_changes import AddColumn
from lakelsm.types import AtomicType
from tests.engines import TableEngine
from tests.option_keys import option_keys
from tests.table_files import live_entries, root_of

SCHEMA = "dt STRING, id BIGINT, v STRING"


def create(engine: TableEngine, folder: Path, columns: str = SCHEMA, **options: str) -> Table:
    """A table of two buckets that compacts after writes unless ``options`` disable it."""
    keys = {"bucket": "2", "write-only": "false", **option_keys(options)}
    return engine.create(folder, columns, ["dt", "id"], ["dt"], keys)


def write(
    engine: TableEngine, table: Table, text: str, days: str = "ab", count: int = 6, **more: Any
) -> CompactionResult | None:
    result = engine.write(table, [(day, number, text) for day in days for number in range(count)], **more)
    compaction: CompactionResult | None = result.compaction
    return compaction


def layout(table: Table) -> dict[tuple[str, int], dict[int, int]]:
    """Return the files by partition directory, bucket and level."""
    found: dict[tuple[str, int], Counter[int]] = {}
    for entry in live_entries(table):
        directory = table._store().data_path(entry.partition, entry.bucket, entry.file.file_name).split("/")[-3]
        found.setdefault((directory, entry.bucket), Counter())[entry.file.level] += 1
    return {bucket: dict(levels) for bucket, levels in found.items()}


def kinds(table: Table) -> list[str]:
    return [snapshot.commit_kind.value for snapshot in table._store().snapshots.list()]


def test_a_write_only_table_is_compacted_by_compact_alone(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path, write_only="true", num_sorted_run__compaction_trigger="2")
    for text in "xyz":
        assert write(local, table, text) is None
    assert kinds(table) == ["APPEND"] * 3
    assert list(layout(table).values()) == [{0: 3}] * 4
    before = local.rows(table)
    planned = local.compact(table, full=True, dry_run=True)
    assert (planned.status, planned.buckets) == ("planned", 4)
    assert kinds(table) == ["APPEND"] * 3
    chosen = local.compact(table, full=True, where="dt = 'a'", buckets=[1])
    assert (chosen.status, chosen.buckets, chosen.snapshot_ids) == ("done", 1, (4,))
    assert layout(table) == {
        ("dt=a", 0): {0: 3},
        ("dt=a", 1): {2: 1},
        ("dt=b", 0): {0: 3},
        ("dt=b", 1): {0: 3},
    }
    rest = local.compact(table, full=True, commit_every=2, commit_user="nightly")
    assert (rest.status, rest.buckets, rest.snapshot_ids) == ("done", 3, (5, 6))
    assert [snapshot.commit_user for snapshot in table._store().snapshots.list()][-2:] == ["nightly"] * 2
    assert local.compact(table, full=True).status == "nothing"
    assert local.rows(table) == before


def test_a_write_compacts_the_buckets_that_it_wrote(engine: TableEngine, tmp_path: Path) -> None:
    table = create(engine, tmp_path, num_sorted_run__compaction_trigger="3")
    assert [(write(engine, table, text) or pytest.fail()).status for text in "xy"] == ["nothing"] * 2
    done = write(engine, table, "z", days="a", commit_user="job", batch_id=7)
    assert done is not None and (done.status, done.buckets, done.snapshot_ids) == ("done", 2, (4,))
    assert {key: max(levels) > 0 for key, levels in layout(table).items()} == {
        ("dt=a", 0): True,
        ("dt=a", 1): True,
        ("dt=b", 0): False,
        ("dt=b", 1): False,
    }
    snapshot = table._store().snapshots.list()[-1]
    assert snapshot.commit_kind is CommitKind.COMPACT
    assert (snapshot.commit_user, snapshot.commit_identifier) == ("job", 7)
    again = engine.write(table, [("a", 0, "again")], commit_user="job", batch_id=7)
    assert again.already_committed and again.compaction is None
    assert engine.rows(table) == [(day, number, "z" if day == "a" else "y") for day in "ab" for number in range(6)]


def test_a_write_succeeds_if_its_compaction_loses(
    engine: TableEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(engine, tmp_path, num_sorted_run__compaction_trigger="2")
    write(engine, table, "x", days="a")
    runner = type(engine.product.runner)
    real = runner.messages

    def raced(self: Any, units: Any, task: Any, *more: Any) -> object:
        messages = real(self, units, task, *more)
        if not isinstance(task, RewriteTask):
            return messages
        monkeypatch.undo()
        engine.opened(root_of(table)).overwrite(engine.frame([("a", 1, "rival")], SCHEMA), {"dt": "a"})
        return messages

    monkeypatch.setattr(runner, "messages", raced)
    lost = write(engine, table, "y", days="a")
    assert lost is not None and lost.status == "conflict"
    assert engine.rows(table) == [("a", 1, "rival")]


def test_old_files_are_rewritten_to_the_newest_schema(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path, write_only="true")
    write(local, table, "x", days="a")
    table = local.catalog(tmp_path).alter_table("db.t", AddColumn("n", AtomicType("INT")))
    local.write(table, [("a", 0, "y", 1)])
    before = local.rows(table)
    done = local.compact(table, full=True)
    assert local.rows(table) == before
    # The bucket without a row of the second write has one file, which is upgraded.
    assert (done.files_written, done.files_upgraded) == (1, 1)
    assert sorted((entry.file.schema_id, entry.file.level) for entry in live_entries(table)) == [(0, 5), (1, 5)]


def test_a_compaction_without_batch_id_is_never_a_replay(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path, write_only="true")
    for text in "xy":
        write(local, table, text, days="a")
        assert local.compact(table, full=True, commit_user="nightly").status == "done"
    snapshots = table._store().snapshots.list()
    identifiers = {one.commit_identifier for one in snapshots if one.commit_kind is CommitKind.COMPACT}
    assert identifiers == {BATCH_COMMIT_IDENTIFIER}


def data_files(root: Path) -> set[Path]:
    return set(root.rglob("bucket-*/*"))


def test_jobs_that_fail_leave_none_of_their_files(engine: TableEngine, tmp_path: Path) -> None:
    options = {"merge_engine": "aggregation", "fields__v__aggregate_function": "sum"}
    table = create(engine, tmp_path, "dt STRING, id BIGINT, v TINYINT", **options, write_only="true")

    def rows(worst: int) -> list[tuple[str, int, int]]:
        return [(day, key, worst if day == "d" else 1) for day in "abcd" for key in (1, 1, 2, 3)]

    for _ in range(2):
        engine.write(table, rows(1))
    before = data_files(tmp_path)
    with pytest.raises(InvalidInputError, match="'v'"):
        engine.write(table, rows(100))
    assert data_files(tmp_path) == before
    broken = sorted(path for path in before if "dt=d" in str(path))[0]
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptTableError, match=broken.name):
        engine.compact(table, full=True)
    assert data_files(tmp_path) == before
    broken.write_bytes(whole)
    assert engine.compact(table, full=True).status == "done"


def test_tasks_remap_masked_rows_if_vectors_changed_concurrently(engine: TableEngine, tmp_path: Path) -> None:
    options = {"deletion_vectors__enabled": "true", "compaction__force_rewrite_all_files": "true"}
    table = create(engine, tmp_path, **options, write_only="true", bucket="1")
    write(engine, table, "old", "a", 100)
    engine.compact(table, full=True)
    store = table._store()
    planned = store.snapshots.latest()
    write(engine, table, "new", "a", 2)
    assert engine.compact(table).rows_masked == 2
    result = compactor.Compactor(engine.product.runner, store).compact(CompactionScope(full=True), snapshot=planned)
    assert (result.status, result.rows_written, result.rows_remapped) == ("done", 100, 2)
    assert engine.rows(table) == [("a", number, "new" if number < 2 else "old") for number in range(100)]
