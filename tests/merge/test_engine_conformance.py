"""The conformance cases of all merge engines, by the kernel alone (no files, no Spark)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.cases import Case, CaseKind, load_cases
from tests.conformance.outcomes import Status
from tests.conformance.table_case import run_table_case
from tests.merge.memory_engine import MemoryEngine, without_changelog
from tests.merge.sketches import sketches_installed

_CASES = Path(__file__).parents[2].parent / "shared" / "conformance" / "tables.jsonl"

#: Topics of which a table in memory can judge every case; others need files, levels or changelogs.
TOPICS = (
    "aggregation",
    "deduplicate",
    "first-row",
    "nullable-pk",
    "partial-update",
    "record-level-expire",
    "rowkind",
    "sequence",
)



def cases(topics: tuple[str, ...] = TOPICS) -> list[Case]:
    """Cases of the topics; none where the shared folder is absent."""
    if not _CASES.exists():
        return []
    return [case for case in load_cases([_CASES]) if case.kind is CaseKind.TABLE and case.topic.startswith(topics)]


@pytest.mark.skipif(not _CASES.exists(), reason="the folder shared/conformance is absent")
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_a_table_in_memory_has_the_rows_of_the_case(case: Case) -> None:
    if "sketch" in str(case.body["options"]) and not sketches_installed():
        pytest.skip("the package datasketches is not installed")
    outcome = run_table_case(without_changelog(case), MemoryEngine())
    assert outcome.status is Status.PASSED, outcome.text()
