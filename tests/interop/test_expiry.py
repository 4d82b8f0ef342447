"""Expiry of Java Paimon and lakelsm, also of long-lived changelogs: each reads, continues and expires after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Table
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon
from tests.interop.samples import rows_of

COLUMNS = "k INT, v STRING"
#: Each commit leaves two snapshots and up to six changelogs.
KEPT = {
    "bucket": "1",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "2",
    "changelog.num-retained.min": "6",
    "changelog.num-retained.max": "6",
}


def one(number: int) -> object:
    return rows_of(COLUMNS, {"k": [number % 3], "v": [f"v{number}"]})


def ids(path: Path, kind: str) -> list[int]:
    return sorted(int(each.name.partition("-")[2]) for each in (path / kind).glob(f"{kind}-*"))


@pytest.mark.parametrize("producer", ["input", "none"])
def test_both_expire_one_table_and_read_what_the_other_left(
    ours: LakelsmTables, java: JavaPaimon, path: Path, producer: str
) -> None:
    java.create(path, COLUMNS, ["k"], options={**KEPT, "changelog-producer": producer})
    table = Table.for_path(str(path))
    table.write(one(0))
    table.tags.create("first")
    for number in range(1, 12):
        if number % 4 < 2:
            table.write(one(number))
        else:
            java.write(path, one(number))  # type: ignore[arg-type]
        assert java.read(path) == ours.read(path)
        assert len(ids(path, "snapshot")) <= 3
    table.maintenance.expire_snapshots(retain_last=2)
    changelogs, snapshots = ids(path, "changelog"), ids(path, "snapshot")
    assert len(snapshots) == 2 and changelogs == list(range(changelogs[0], snapshots[0]))
    assert table.at(tag="first").to_arrow().num_rows == 1
    assert table.maintenance.check().findings == ()
    steps = [ours.changes(path, number - 1, number) for number in range(changelogs[0], snapshots[-1] + 1)]
    assert java.stream(path, changelogs[0]) == [changes for changes in steps if changes]
    table.compact(full=True, engine="local")
    java.write(path, one(12))  # type: ignore[arg-type]
    assert java.read(path) == ours.read(path)
