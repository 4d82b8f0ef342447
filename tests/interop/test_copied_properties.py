"""Java copies or drops properties of lakelsm's snapshots: the snapshots and rows of both engines remain."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from lakelsm import Table
from lakelsm.snapshots.table_store import TableStore
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon
from tests.interop.samples import rows_of

COLUMNS = "k INT NOT NULL, v STRING"
OPTIONS = {"bucket": "1", "write-only": "true"}


def row(key: int, text: str) -> pa.Table:
    return rows_of(COLUMNS, {"k": [key], "v": [text]})


def test_javas_snapshots_remain_and_rows_are_correct_after_operations_of_java(
    ours: LakelsmTables, java: JavaPaimon, path: Path
) -> None:
    ours.create(path, COLUMNS, ["k"], options=OPTIONS)
    table = Table.for_path(str(path))
    expected: dict[int, str] = {}

    def both_read() -> None:
        assert java.read(path) == ours.read(path)
        assert set(ours.read(path)) == set(expected.items())

    def ours_writes(text: str) -> None:
        for key in (0, len(expected)):
            table.write(row(key, text))
            expected[key] = text
        both_read()

    def java_writes(text: str) -> None:
        java.write(path, row(0, text))
        expected[0] = text
        both_read()

    def snapshots() -> list[tuple[int, str, str]]:
        return [(each.id, each.fingerprint, each.commit_user) for each in TableStore.open(str(path)).snapshots.list()]

    for turn, done in enumerate(("manifests", "replace", "manifests", "replace")):
        ours_writes(f"before-{turn}")
        before = snapshots()
        java.version(path, done, "")
        now = snapshots()
        assert now[: len(before)] == before and len(now) == len(before) + 1, done
        newest = TableStore.open(str(path)).snapshots.latest()
        assert newest is not None and newest.properties and not newest.is_ours, "Java copied our properties"
        if turn > 1:
            java_writes(f"java-{turn}")
        kept = snapshots()
        ours_writes(f"after-{done}-{turn}")
        assert snapshots()[: len(kept)] == kept, "nothing that Java wrote is removed"
        java_writes(f"java-after-{turn}")
        assert table.maintenance.check(data="full", engine="local").findings == ()
    java.compact(path)
    both_read()
    ours_writes("after-compaction")
    java.version(path, "create", "kept", TableStore.open(str(path)).snapshots.latest_id() or 0)
    held = dict(expected)
    ours_writes("rolled-back")
    java.version(path, "manifests", "")
    java.version(path, "rollback", "kept")
    expected.clear()
    expected.update(held)
    both_read()
    ours_writes("after-rollback")
    table.compact(full=True, engine="local")
    both_read()
    java.version(path, "manifests", "")
    java.version(path, "replace", "")
    table.maintenance.expire_snapshots(retain_last=1)
    ours_writes("after-expiry")
    # Java's rollback does not delete manifests of snapshots that it deletes.
    assert {finding.rule for finding in table.maintenance.check(data="full", engine="local").findings} <= {
        "manifest-stray"
    }
