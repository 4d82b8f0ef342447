"""Case files and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.cases import Case, CaseFileError, CaseKind, load_cases, parse_case
from tests.conformance.outcomes import Outcome, Status, closing_line, summary_by_topic

LINES: list[dict[str, Any]] = [
    {"id": "t1", "topic": "deduplicate", "steps": []},
    {"id": "u1", "method": "pick"},
    {"id": "i1", "files": [], "expect_sections": []},
    {"id": "c1", "files": [], "unit": {}},
]


def write_lines(file: Path, lines: list[dict[str, Any]]) -> Path:
    file.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n", encoding="utf-8")
    return file


def test_the_keys_of_a_case_show_its_kind() -> None:
    assert [parse_case(line).kind for line in LINES] == [
        CaseKind.TABLE,
        CaseKind.UNIVERSAL,
        CaseKind.INTERVAL,
        CaseKind.COMPACT_TASK,
    ]
    assert [parse_case(line).topic for line in LINES] == [
        "deduplicate",
        "universal",
        "interval",
        "compact_task",
    ]


def test_cases_are_selected_by_topic_and_id(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "all.jsonl", LINES)
    assert [case.id for case in load_cases([file])] == ["t1", "u1", "i1", "c1"]
    assert [case.id for case in load_cases([file], topic="interval")] == ["i1"]
    assert [case.id for case in load_cases([file], case_id="c1")] == ["c1"]


def test_a_selection_without_cases_names_the_existing_topics(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "all.jsonl", LINES)
    with pytest.raises(CaseFileError, match="compact_task, deduplicate, interval, universal"):
        load_cases([file], topic="dedup")


def test_a_line_that_is_not_a_case_is_named(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "bad.jsonl", [*LINES, {"id": "x"}])
    with pytest.raises(CaseFileError, match=r"bad\.jsonl:5: case 'x'"):
        load_cases([file])


def outcome(topic: str, status: Status, case_id: str = "x") -> Outcome:
    return Outcome(
        Case(CaseKind.TABLE, case_id, topic, {}), status, "step 2, read", "the rows differ", "[[1]]", "[[2]]"
    )


def test_the_report_counts_by_topic_and_ends_with_the_totals() -> None:
    outcomes = [
        outcome("b", Status.PASSED),
        outcome("a", Status.FAILED),
        outcome("b", Status.REFUSED),
        outcome("b", Status.PASSED),
    ]
    assert summary_by_topic(outcomes).splitlines() == [
        "topic   passed   failed  refused",
        "a            0        1        0",
        "b            2        0        1",
    ]
    assert closing_line(outcomes) == "passed 2, failed 1, refused 1"


def test_a_failure_shows_its_id_and_the_rows() -> None:
    text = outcome("sequence", Status.FAILED, "seq-1").text()
    assert "seq-1" in text and "step 2, read" in text
    assert "expected [[1]]" in text and "actual   [[2]]" in text
