"""Partitions marked as done by Paimon's success file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.environment import SYSTEM
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.maintain.partitions.partition_done import mark_partitions_done
from lakelsm.schema_changes import SetOption
from tests.maintain.partitions.partitioned_table import fill, left, partitioned


def test_the_file_has_its_creation_and_modification_time(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    fill(table, "a", "b")
    assert table.maintenance.mark_partitions_done("dt = 'a'") == ["dt=a"]
    path = tmp_path / "db.db/t/dt=a/_SUCCESS"
    first = json.loads(path.read_text())
    assert first["creationTime"] == first["modificationTime"]
    mark_partitions_done(table._store(), None, environment=replace(SYSTEM, clock=lambda: first["creationTime"] + 5))
    second = json.loads(path.read_text())
    assert second == {"creationTime": first["creationTime"], "modificationTime": first["creationTime"] + 5}
    assert (tmp_path / "db.db/t/dt=b/_SUCCESS").exists()
    fill(table, "a")
    table.compact(full=True)
    table.maintenance.drop_partitions("dt = 'b'")
    table.maintenance.expire_snapshots(retain_last=1, older_than="0 s")
    table.maintenance.remove_orphans(0, force=True, engine="local")
    assert left(table) == ["a"] and path.exists() and table.maintenance.check().ok


def test_a_batch_marks_its_partitions_as_done_if_the_option_is_set(tmp_path: Path) -> None:
    table = partitioned(tmp_path, **{"partition.end-input-to-done": True})
    fill(table, "a")
    assert sorted(path.parent.name for path in tmp_path.rglob("_SUCCESS")) == ["dt=a"]


def test_a_failure_to_mark_a_partition_never_fails_the_batch(tmp_path: Path) -> None:
    table = partitioned(tmp_path, **{"partition.end-input-to-done": True})
    (tmp_path / "db.db/t/dt=a/_SUCCESS").mkdir(parents=True)
    with pytest.warns(UserWarning, match="marking partitions as done after it failed"):
        fill(table, "a")
    assert left(table) == ["a"]


def test_other_actions_and_damaged_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"partition\.mark-done-action"):
        partitioned(tmp_path / "new", **{"partition.mark-done-action": "done-partition"})
    table = partitioned(tmp_path)
    fill(table, "a")
    path = tmp_path / "db.db/t/dt=a/_SUCCESS"
    path.write_text("{}")
    with pytest.raises(Exception, match="delete the file"):
        table.maintenance.mark_partitions_done()
    with pytest.raises(UnsupportedFeatureError, match=r"partition\.mark-done-action"):
        Catalog(str(tmp_path)).alter_table("db.t", SetOption("partition.mark-done-action", "http-report"))
    schema = tmp_path / "db.db/t/schema/schema-0"
    schema.write_text(schema.read_text().replace('"write-only"', '"partition.mark-done-action" : "custom", "write-only"'))
    with pytest.raises(UnsupportedFeatureError, match="'custom'"):
        table.maintenance.mark_partitions_done()


def test_a_table_without_partitions_is_refused(tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table("db.t", "id INT", primary_key=["id"])
    with pytest.raises(InvalidInputError, match="no partition columns"):
        table.maintenance.mark_partitions_done()
