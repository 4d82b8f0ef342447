"""Results as plain values for reports, as one line of text, and as a table for notebooks."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta, timezone

import pytest

import lakelsm.results
from lakelsm.results import (
    BranchInfo,
    BucketStatus,
    CheckFinding,
    CheckResult,
    CommitResult,
    CompactionResult,
    CompactionStatus,
    Failure,
    OrphanResult,
    PartitionExpiryResult,
    Result,
    Staleness,
    TableStatus,
    TagInfo,
    UpkeepStatus,
)
from lakelsm.results.result import sums

TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
ISO = "2026-01-02T03:04:05+00:00"
LOST = Failure(step="the commit", error="CommitConflictError", kind="retry", text="lost", remedy="again")
FAILED = CompactionResult(table="d.t", status=CompactionStatus.FAILED, error=LOST)
CLASSES = sorted(set(lakelsm.results.__all__) - {"CompactionStatus", "Result"})


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (BranchInfo(name="b", created=TIME), {"created": ISO, "snapshot_id": None}),
        (OrphanResult(table="t", older_than=TIME, kinds={"data": 2}), {"older_than": ISO, "kinds": {"data": 2}}),
        (
            TagInfo(name="a", snapshot_id=1, schema_id=0, rows=1, committed_at=TIME, time_retained=timedelta(hours=1)),
            {"committed_at": ISO, "created_at": None, "time_retained": 3600.0},
        ),
        (
            Staleness(
                table="t", cache="full", snapshot_id=1, committed_at=TIME, age_seconds=0.5,
                newest_snapshot_id=1, snapshots_behind=0, seconds_since_look=0.0,
            ),
            {"committed_at": ISO},
        ),
        (FAILED, {"status": "failed", "error": "lost", "error_class": "CommitConflictError", "error_kind": "retry"}),
        (PartitionExpiryResult(table="t", older_than=TIME), {"error": None, "error_class": None, "remedy": None}),
        (CommitResult(snapshot_id=3, compaction=FAILED), {"compaction": FAILED.as_dict()}),
        (
            CommitResult(snapshot_id=3, after_commit_failures=(LOST,)),
            {"compaction": None, "after_commit_failures": (LOST.as_dict(),)},
        ),
        (
            TableStatus(
                table="t", snapshot_id=1, worst_buckets=(BucketStatus(partition="", bucket=0, files=2),),
                upkeep=UpkeepStatus(orphans_removed_at=TIME),
            ),
            {"upkeep": UpkeepStatus(orphans_removed_at=TIME).as_dict(), "next_compaction": None},
        ),
        (CheckResult(table="t", complete=False), {"ok": False, "findings": ()}),
    ],
)
def test_a_result_as_a_dictionary_has_plain_values(result: Result, expected: dict[str, object]) -> None:
    found = result.as_dict()
    assert {name: found[name] for name in expected} == expected
    assert {field.name for field in fields(result)} <= set(json.loads(json.dumps(found)))
    assert all(type(value) is not CompactionStatus for value in found.values())


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (CommitResult(snapshot_id=3, files=1, rows=10), "CommitResult(snapshot_id=3, files=1, rows=10)"),
        (CommitResult(snapshot_id=None), "CommitResult(snapshot_id=None)"),
        (BranchInfo(name="b", created=TIME), f"BranchInfo(name='b', created='{ISO}')"),
        (CheckResult(table="t", seconds=0.123456), "CheckResult(table='t', seconds=0.123)"),
        (
            CompactionResult(table="t", status=CompactionStatus.DONE, snapshot_ids=(3,)),
            "CompactionResult(table='t', status='done', snapshot_ids=(3,))",
        ),
        (
            CommitResult(snapshot_id=3, compaction=CompactionResult(table="t", status=CompactionStatus.DONE)),
            "CommitResult(snapshot_id=3, compaction=CompactionResult(table='t', status='done'))",
        ),
        (LOST, f"Failure({', '.join(f'{name}={value!r}' for name, value in LOST.as_dict().items())})"),
    ],
)
def test_the_text_of_a_result_has_the_fields_that_differ_from_their_defaults(result: Result, expected: str) -> None:
    assert repr(result) == expected


def test_a_long_value_is_cut_in_the_text_and_escaped_in_html() -> None:
    finding = CheckFinding(severity="error", rule="r", thing="<b>&", problem="two\nlines", remedy="x" * 500)
    text, html = repr(finding), finding._repr_html_()
    assert "\n" not in text and "x" * 79 + "…" in text and len(text) < 200
    assert "&lt;b&gt;&amp;" in html and "<b>" not in html and html.count("<tr>") == len(fields(finding))
    assert "<tr><th>rows</th><td>7</td></tr>" in CommitResult(snapshot_id=1, rows=7)._repr_html_()
    assert "files" not in CommitResult(snapshot_id=1, rows=7)._repr_html_()


def test_numbers_and_tuples_of_two_results_add_up() -> None:
    one = OrphanResult(table="t", older_than=TIME, files=2, examples=("a",), seconds=0.5, complete=False)
    two = OrphanResult(table="t", older_than=TIME, files=3, examples=("b",), seconds=1.0)
    added = {name: value for name, value in sums(one, two).items() if value}
    assert added == {"files": 5, "examples": ("a", "b"), "seconds": 1.5}


@pytest.mark.parametrize("name", CLASSES)
def test_every_result_is_a_frozen_value_with_the_same_text_and_report(name: str) -> None:
    made = getattr(lakelsm.results, name)
    assert issubclass(made, Result) and is_dataclass(made) and made.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert made.__repr__ is Result.__repr__ and made._repr_html_ is Result._repr_html_
