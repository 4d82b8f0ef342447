"""The findings of a check: one for each rule and thing, bounded, without those of expired files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.maintain.check.findings import MAX_FINDINGS_PER_RULE, Findings
from lakelsm.maintain.check.rules import DATA_FILE_MISSING, MANIFEST_UNREADABLE, STALE_HINT
from lakelsm.storage import LocalFileIO


def test_a_rule_is_reported_once_for_a_thing_and_errors_come_first() -> None:
    findings = Findings()
    findings.add(STALE_HINT, "hint", "stale")
    for _ in range(2):
        findings.add(MANIFEST_UNREADABLE, "manifest", "damaged")
    reported, more = findings.reported(LocalFileIO())
    assert [(found.severity, found.rule, found.thing) for found in reported] == [
        ("error", "manifest-unreadable", "manifest"),
        ("warning", "stale-hint", "hint"),
    ]
    assert more == 0 and reported[0].remedy == MANIFEST_UNREADABLE.remedy


def test_a_missing_file_of_an_expired_snapshot_is_no_finding(tmp_path: Path) -> None:
    findings = Findings()
    kept = tmp_path / "snapshot-2"
    kept.write_text("{}")
    findings.add(DATA_FILE_MISSING, "one", "gone", str(tmp_path / "snapshot-1"))
    findings.add(DATA_FILE_MISSING, "two", "gone", str(kept))
    assert [found.thing for found in findings.reported(LocalFileIO())[0]] == ["two"]


def test_findings_of_a_rule_beyond_the_limit_are_counted() -> None:
    findings = Findings()
    for number in range(MAX_FINDINGS_PER_RULE + 5):
        findings.add(DATA_FILE_MISSING, str(number), "gone")
    reported, more = findings.reported(LocalFileIO())
    assert (len(reported), more) == (MAX_FINDINGS_PER_RULE, 5)


def test_errors_of_the_table_and_the_storage_become_findings_and_bugs_do_not() -> None:
    findings = Findings()
    for error in (CorruptTableError("damaged"), PermissionError("denied")):
        with findings.errors_as(MANIFEST_UNREADABLE, str(error)):
            raise error
    assert [found.problem for found in findings.reported(LocalFileIO())[0]] == ["damaged", "denied"]
    with pytest.raises(KeyError), findings.errors_as(MANIFEST_UNREADABLE, "x"):
        raise KeyError("x")


def test_findings_in_a_removed_directory_are_dropped() -> None:
    findings = Findings()
    for thing in ("/t/branch/branch-b", "/t/branch/branch-b/snapshot/LATEST", "/t/branch/branch-b2"):
        findings.add(STALE_HINT, thing, "stale")
    findings.add(DATA_FILE_MISSING, "/t/bucket-0/data", "gone", "/t/branch/branch-b/tag/tag-x")
    found, _ = findings.reported(LocalFileIO(), ["/t/branch/branch-b"])
    assert [each.thing for each in found] == ["/t/branch/branch-b2"]
