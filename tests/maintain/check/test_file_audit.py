"""What a task that opens data files tells."""

from __future__ import annotations

import pickle
from pathlib import Path

from lakelsm.maintain.check.audit_plan import CheckedData, plan_audit
from lakelsm.maintain.check.file_audit import FileAudit
from lakelsm.maintain.check.rules import DATA_FILE_FOOTER
from lakelsm.snapshots.deletion_vectors import DeletionVectors
from tests.compact.local_table import LocalTable


def test_a_task_counts_what_it_opened_and_travels(tmp_path: Path) -> None:
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
