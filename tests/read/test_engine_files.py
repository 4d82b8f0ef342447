"""The conformance cases through real files: level 0, compactions, the parts of a read, and changelogs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.cases import Case, CaseKind, load_cases
from tests.conformance.outcomes import Status
from tests.conformance.table_case import run_table_case
from tests.merge.sketches import sketches_installed
from tests.read.file_engine import FileEngine, allow_snapshot_ordering

_CASES = Path(__file__).parents[2].parent / "shared" / "conformance" / "tables.jsonl"

#: Features that are not built, and refused by name.
_UNBUILT_TOPICS = ("cross-partition", "dv", "postpone-bucket")


def cases() -> list[Case]:
    """Return the cases of all other topics; none if the shared folder is missing."""
    found = load_cases([_CASES]) if _CASES.exists() else []
    return [case for case in found if case.kind is CaseKind.TABLE and case.topic not in _UNBUILT_TOPICS]


@pytest.mark.skipif(not _CASES.exists(), reason="the folder shared/conformance is absent")
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_a_table_of_files_has_the_rows_of_the_case(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sketch" in str(case.body["options"]) and not sketches_installed():
        pytest.skip("the package datasketches is not installed")
    allow_snapshot_ordering(monkeypatch)
    outcome = run_table_case(case, FileEngine(tmp_path))
    assert outcome.status is Status.PASSED, outcome.text()
