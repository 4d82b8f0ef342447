"""A check warns of manifests that no retained state names, and of no manifest that a state needs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.unreferenced_manifests import UnreferencedManifests
from lakelsm.results import CheckResult

OPTIONS = {"bucket": "-1", "changelog-producer": "lookup", "write-only": "true"}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Catalog(str(tmp_path)).create_table("db.t", "k INT, v INT", primary_key=["k"], options=OPTIONS)
    for number in range(3):
        made.write(rows(number))
        made.compact(full=True, engine="local")
    return made


def rows(number: int) -> pa.Table:
    return pa.table({"k": pa.array([1, number + 2], pa.int32()), "v": pa.array([number, number], pa.int32())})


def manifests(table: Table) -> Path:
    return Path(table._store().paths.manifest_dir)


def checked(table: Table) -> CheckResult:
    return table.maintenance.check(data="none", engine="local")


def reported(unreferenced: UnreferencedManifests, table: Table) -> set[str]:
    findings = Findings()
    unreferenced.report(findings)
    return {finding.rule for finding in findings.reported(table._store().file_io)[0]}


@pytest.mark.parametrize("kind", ["manifest", "manifest-list", "index-manifest"])
def test_an_unreferenced_manifest_is_a_warning_until_orphans_are_removed(table: Table, kind: str) -> None:
    folder = manifests(table)
    copied = next(path for path in folder.iterdir() if re.match(f"{kind}-[0-9a-f]", path.name))
    stray = folder / f"{kind}-{uuid4()}-0"
    shutil.copy(copied, stray)
    result = checked(table)
    assert result.ok and [(each.rule, each.thing) for each in result.findings] == [("manifest-stray", str(stray))]
    assert table.maintenance.remove_orphans(0, force=True, engine="local").files == 1
    assert checked(table).findings == ()


def test_manifests_of_tags_branches_and_changelogs_are_referenced(table: Table) -> None:
    table.tags.create("kept", 3)
    table.branches.create("b", "kept")
    table.branches.open("b").write(rows(9))
    table.branches.open("b").tags.create("there")
    table.write(rows(4))
    table.maintenance.expire_snapshots(retain_last=1)
    assert checked(table).findings == ()


@pytest.mark.parametrize("producer", ["none", "input"])
def test_manifests_of_long_lived_changelogs_are_referenced(tmp_path: Path, producer: str) -> None:
    options = {
        "bucket": "1",
        "changelog-producer": producer,
        "changelog.num-retained.min": "50",
        "changelog.num-retained.max": "60",
        "write-only": "true",
    }
    table = Catalog(str(tmp_path)).create_table("db.t", "k INT, v INT", primary_key=["k"], options=options)
    for number in range(5):
        table.write(rows(number))
        table.compact(full=True, engine="local")
    table.tags.create("kept", 3)
    table.maintenance.expire_snapshots(retain_last=1)
    assert list(Path(table._store().paths.changelog_dir).glob("changelog-*"))
    assert checked(table).findings == ()


def test_manifests_of_a_commit_during_the_check_are_not_reported(table: Table) -> None:
    published = Path(table._store().paths.snapshot_file(7))
    table.write(rows(5))
    hidden = published.rename(published.parent / ".hidden")
    hint = Path(table._store().paths.latest_hint)
    hint.write_text("6")
    unreferenced = UnreferencedManifests(table._store())
    assert reported(unreferenced, table) == {"manifest-stray"}
    hidden.rename(published)
    assert reported(unreferenced, table) == set()


@pytest.mark.parametrize("lost", ["snapshot/snapshot-4", "snapshot/snapshot-6", "tag/tag-kept"])
def test_manifests_that_an_unreadable_state_may_need_are_not_reported(table: Table, lost: str) -> None:
    table.tags.create("kept", 1)
    table.maintenance.expire_snapshots(retain_last=4)
    path = Path(table._store().paths.root) / lost
    if lost.startswith("tag"):
        path.write_bytes(b"{")
    else:
        path.unlink()
    rules = {finding.rule for finding in Table.for_path(str(path.parents[1])).maintenance.check(engine="local").findings}
    assert rules and "manifest-stray" not in rules
