"""The findings and counts of a task that opens data files."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from lakelsm import Catalog, Table
from lakelsm.maintain.check.audit_plan import CheckedData, plan_audit
from lakelsm.maintain.check.file_audit import FileAudit
from lakelsm.maintain.check.rules import DATA_FILE_FOOTER
from lakelsm.snapshots.deletion_vectors import DeletionVectors
from tests.compact.local_table import LocalTable


def test_a_task_counts_the_files_it_opens_and_can_be_pickled(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"), (2, "b"))
    table.write((3, "c"))
    table.path_of(table.live()[1]).write_bytes(b"PAR1 no Parquet PAR1")
    store = table.store
    plan = plan_audit(store, table.live(), DeletionVectors(), {}, data=CheckedData.FULL, chance=0.0)
    task, (work,) = pickle.loads(pickle.dumps((FileAudit.of(store, {0: store.schema}), plan.files)))
    (batch,) = task(work)
    rows = batch.to_pylist()
    assert [row["rule"] for row in rows if row["rule"]] == [DATA_FILE_FOOTER.name]
    assert [sum(row[name] for row in rows) for name in ("files_opened", "files_read", "rows_read")] == [2, 1, 2]


def test_a_changed_column_id_is_found_by_files_if_no_snapshot_records_the_schema(tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table("db.t", "k INT, v STRING", primary_key=["k"], options={"bucket": 1})
    table.write(pa.table({"k": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}))
    store = table._store()
    schema = Path(store.paths.schema_file(0))
    document = json.loads(schema.read_text())
    document["fields"][1]["id"], document["highestFieldId"] = 7, 7
    schema.write_text(json.dumps(document))
    snapshot = Path(store.paths.snapshot_file(1))
    known = Table.for_path(store.paths.root).maintenance.check(data="none", engine="local").findings
    assert [finding.rule for finding in known] == ["schema-unreadable"], "by its checksum"
    snapshot.write_text(replace(store.snapshots.get(1), extra={}, properties=None).to_json())
    for data in ("footers", "full"):
        (found,) = Table.for_path(store.paths.root).maintenance.check(data=data, engine="local").findings
        assert found.rule == "data-file-footer" and "column 'v' has id 1, but schema-0 says 7" in found.problem
