"""Data files are opened in tasks of a runner."""

from __future__ import annotations

from pathlib import Path

from lakelsm.maintain.check.audit_plan import CheckedData
from lakelsm.maintain.check.data_audit import DataAudit
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.rules import DATA_FILE_MISSING
from lakelsm.snapshots.deletion_vectors import DeletionVectors, deletion_vectors
from tests.compact.local_table import InlineRunner, LocalTable
from tests.damage.samples import SAMPLES, build


def test_a_file_is_opened_once_and_only_without_a_known_fault(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    for key in range(3):
        table.write((key, "a"))
    store, findings, entries = table.store, Findings(), table.live()
    findings.add(DATA_FILE_MISSING, str(table.path_of(entries[0])), "gone")
    audit = DataAudit(InlineRunner(), findings, CheckedData.FULL, chance=0.0, has_time=lambda: True)
    for live in (entries[:2], entries):
        audit.audit(store, live, {0: store.schema}, vectors=DeletionVectors(), indexes={}, owner=str(table.root))
    assert audit.counts == {"files_opened": 2, "files_read": 2, "rows_read": 2}


def test_another_states_vector_of_an_opened_file_is_checked(tmp_path: Path) -> None:
    table = build(tmp_path / "t", SAMPLES["vectors"])
    store, findings = table.store, Findings()
    vectors = deletion_vectors(store, table.latest)
    audit = DataAudit(InlineRunner(), findings, CheckedData.FULL, chance=0.0, has_time=lambda: True)
    schemas = store.schemas_of(store.schemas.ids())
    audit.audit(store, table.live(), schemas, vectors=None, indexes={}, owner=str(table.root))
    (location, *_) = [location for locations in vectors.locations.values() for location in locations.values()]
    Path(location.index_path).write_bytes(b"\1" * location.index_size)
    audit.audit(store, table.live(), schemas, vectors=vectors, indexes={}, owner=str(table.root))
    assert {found.rule for found in findings.reported(store.file_io)[0]} == {"vector-unreadable"}
    assert audit.counts["files_read"] == len(table.live())


def test_no_file_is_opened_after_the_deadline(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"))
    runner = InlineRunner()
    audit = DataAudit(runner, Findings(), CheckedData.FULL, chance=0.0, has_time=lambda: False)
    audit.audit(table.store, table.live(), {0: table.store.schema}, vectors=None, indexes={}, owner="")
    assert runner.jobs == 0
