"""`Table.compact` and the compaction that follows a write, on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog, CompactionResult, CorruptTableError, InvalidInputError, Table
from lakelsm.compact import compactor
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER
from lakelsm.plan.compaction_plan import CompactionScope
from lakelsm.schema.changes import AddColumn
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import AtomicType
from tests.option_keys import option_keys

SCHEMA = "dt STRING, id BIGINT, v STRING"


def create(spark: SparkSession, root: Path, **options: str) -> Table:
    keys = option_keys(options)
    return Catalog(str(root), spark).create_table(
        "d.t", SCHEMA, primary_key=["dt", "id"], partition_by=["dt"], options={"bucket": "2", **keys}
    )


def write(table: Table, text: str, days: str = "ab", count: int = 6, **more: object) -> CompactionResult | None:
    rows = [{"dt": day, "id": number, "v": text} for day in days for number in range(count)]
    return table.write(table.spark.createDataFrame(pa.Table.from_pylist(rows)), **more).compaction  # type: ignore[arg-type]


def layout(table: Table) -> dict[tuple[str, int], Mapping[int, int]]:
    """Files by partition and bucket, then level."""
    found: dict[tuple[str, int], dict[int, int]] = {}
    for row in table.buckets().collect():
        found.setdefault((row.partition, row.bucket), {})[row.level] = row.files
    return found


def kinds(table: Table) -> list[str]:
    return [row.commit_kind for row in table.snapshots().collect()]


def values(table: Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in table.read().collect())


def test_a_write_only_table_is_compacted_by_compact_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = create(spark, tmp_path, write_only="true", num_sorted_run__compaction_trigger="2")
    for text in "xyz":
        assert write(table, text) is None
    assert kinds(table) == ["APPEND"] * 3
    assert list(layout(table).values()) == [{0: 3}] * 4
    before = values(table)
    planned = table.compact(full=True, dry_run=True)
    assert (planned.status, planned.buckets) == ("planned", 4)
    assert kinds(table) == ["APPEND"] * 3
    chosen = table.compact(full=True, where="dt = 'a'", buckets=[1])
    assert (chosen.status, chosen.buckets, chosen.snapshot_ids) == ("done", 1, (4,))
    assert layout(table) == {
        ("dt=a", 0): {0: 3},
        ("dt=a", 1): {2: 1},
        ("dt=b", 0): {0: 3},
        ("dt=b", 1): {0: 3},
    }
    rest = table.compact(full=True, commit_every=2, commit_user="nightly")
    assert (rest.status, rest.buckets, rest.snapshot_ids) == ("done", 3, (5, 6))
    assert [row.commit_user for row in table.snapshots().collect()][-2:] == ["nightly"] * 2
    assert table.compact(full=True).status == "nothing"
    assert values(table) == before


def test_a_write_compacts_the_buckets_that_it_wrote(spark: SparkSession, tmp_path: Path) -> None:
    table = create(spark, tmp_path, num_sorted_run__compaction_trigger="3")
    assert [(write(table, text) or pytest.fail()).status for text in "xy"] == ["nothing"] * 2
    done = write(table, "z", days="a", commit_user="job", batch_id=7)
    assert done is not None and (done.status, done.buckets, done.snapshot_ids) == ("done", 2, (4,))
    assert {key: max(levels) > 0 for key, levels in layout(table).items()} == {
        ("dt=a", 0): True,
        ("dt=a", 1): True,
        ("dt=b", 0): False,
        ("dt=b", 1): False,
    }
    snapshot = table.snapshots().collect()[-1]
    assert (snapshot.commit_kind, snapshot.commit_user, snapshot.commit_identifier) == ("COMPACT", "job", 7)
    again = table.write(table.read(), commit_user="job", batch_id=7)
    assert again.already_committed and again.compaction is None
    assert values(table) == [(day, number, "z" if day == "a" else "y") for day in "ab" for number in range(6)]


def test_a_write_stands_though_its_compaction_loses(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(spark, tmp_path, num_sorted_run__compaction_trigger="2")
    write(table, "x", days="a")
    from lakelsm.spark.spark_runner import SparkRunner

    real = SparkRunner.messages

    def raced(*arguments: Any) -> object:
        monkeypatch.undo()
        messages = real(*arguments)
        rival = spark.createDataFrame([("a", 1, "rival")], SCHEMA)
        Table.for_path(str(tmp_path / "d.db" / "t"), spark).overwrite(rival, {"dt": "a"})
        return messages

    monkeypatch.setattr(SparkRunner, "messages", raced)
    lost = write(table, "y", days="a")
    assert lost is not None and lost.status == "conflict"
    assert values(table) == [("a", 1, "rival")]


def test_old_files_are_rewritten_to_the_newest_schema(spark: SparkSession, tmp_path: Path) -> None:
    table = create(spark, tmp_path, write_only="true")
    write(table, "x", days="a")
    table = Catalog(str(tmp_path), spark).alter_table("d.t", AddColumn("n", AtomicType("INT")))
    table.write(spark.createDataFrame([("a", 0, "y", 1)], f"{SCHEMA}, n INT"))
    before = table.read().orderBy("id").collect()
    done = table.compact(full=True)
    assert table.read().orderBy("id").collect() == before
    # The bucket without a row of the second write has one file, which moves up as it is.
    assert (done.files_written, done.files_upgraded) == (1, 1)
    assert sorted((row.schema_id, row.level) for row in table.files().collect()) == [(0, 5), (1, 5)]


@pytest.mark.parametrize("where", ["id = 1", "dt = 'a' and v = 'x'", "length(dt) = 1"])
def test_a_condition_on_other_columns_or_beyond_literals_is_refused(
    spark: SparkSession, tmp_path: Path, where: str
) -> None:
    table = create(spark, tmp_path)
    with pytest.raises(InvalidInputError, match=r"partition columns \(dt\)"):
        table.compact(where=where)


def test_a_compaction_without_batch_id_is_never_taken_for_a_replay(spark: SparkSession, tmp_path: Path) -> None:
    table = create(spark, tmp_path, write_only="true")
    for text in "xy":
        write(table, text, days="a")
        assert table.compact(full=True, commit_user="nightly").status == "done"
    identifiers = {row.commit_identifier for row in table.snapshots().collect() if row.commit_kind == "COMPACT"}
    assert identifiers == {BATCH_COMMIT_IDENTIFIER}


def data_files(root: Path) -> set[Path]:
    return set(root.rglob("bucket-*/*"))


def test_jobs_that_fail_leave_none_of_their_files(spark: SparkSession, tmp_path: Path) -> None:
    table = Catalog(str(tmp_path), spark).create_table(
        "d.n",
        "dt STRING, id BIGINT, v TINYINT",
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={
            "bucket": "2",
            "write-only": "true",
            "merge-engine": "aggregation",
            "fields.v.aggregate-function": "sum",
        },
    )

    def rows(worst: int) -> list[dict[str, object]]:
        return [{"dt": day, "id": key, "v": worst if day == "d" else 1} for day in "abcd" for key in (1, 1, 2, 3)]

    for _ in range(2):
        table.write(spark.createDataFrame(rows(1), "dt STRING, id BIGINT, v TINYINT"))
    before = data_files(tmp_path)
    with pytest.raises(InvalidInputError, match="'v'"):
        table.write(spark.createDataFrame(rows(100), "dt STRING, id BIGINT, v TINYINT"))
    assert data_files(tmp_path) == before
    broken = sorted(path for path in before if "dt=d" in str(path))[0]
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptTableError, match=broken.name):
        table.compact(full=True)
    assert data_files(tmp_path) == before
    broken.write_bytes(whole)
    assert table.compact(full=True).status == "done"


def test_marks_are_carried_over_by_tasks_where_vectors_changed_meanwhile(spark: SparkSession, tmp_path: Path) -> None:
    from lakelsm.spark.spark_runner import SparkRunner

    options = {"deletion_vectors__enabled": "true", "compaction__force_rewrite_all_files": "true"}
    table = create(spark, tmp_path, **options, write_only="true", bucket="1")
    write(table, "old", "a", 100)
    table.compact(full=True)
    store = TableStore.open(str(tmp_path / "d.db" / "t"))
    planned = store.snapshots.latest()
    write(table, "new", "a", 2)
    assert table.compact().rows_masked == 2
    result = compactor.Compactor(SparkRunner(spark), store).compact(CompactionScope(full=True), snapshot=planned)
    assert (result.status, result.rows_written, result.rows_remapped) == ("done", 100, 2)
    assert values(table) == [("a", number, "new" if number < 2 else "old") for number in range(100)]
