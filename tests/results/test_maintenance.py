"""The conditions under which a check is ok, and the text of its result."""

from __future__ import annotations

import pytest

from lakelsm.results import CheckFinding, CheckResult


def _finding(severity: str) -> CheckFinding:
    return CheckFinding(severity=severity, rule="r", thing="bucket-0/a", problem="It is missing.", remedy="Restore it.")


@pytest.mark.parametrize(
    ("result", "ok"),
    [
        (CheckResult(table="d.t"), True),
        (CheckResult(table="d.t", complete=False), False),
        (CheckResult(table="d.t", findings=(_finding("warning"),)), True),
        (CheckResult(table="d.t", findings=(_finding("warning"), _finding("error"))), False),
    ],
)
def test_a_check_is_ok_if_it_is_complete_and_has_no_error(result: CheckResult, ok: bool) -> None:
    assert result.ok is ok is result.as_dict()["ok"]


def test_the_text_of_a_check_has_each_finding_with_its_remedy() -> None:
    lines = CheckResult(table="d.t", findings=(_finding("error"),), findings_left_out=3).as_text().splitlines()
    assert lines[0].startswith("Table d.t: 1 finding")
    assert lines[1:] == [
        "error r: bucket-0/a", "  It is missing.", "  Restore it.", "3 more findings of the same rules are not shown."
    ]
