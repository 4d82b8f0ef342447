"""The conformance cases of the merge engines through real files: level 0, compactions, and the parts of a read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.cases import Case
from tests.conformance.outcomes import Status
from tests.conformance.table_case import run_table_case
from tests.merge.sketches import sketches_installed
from tests.merge.test_engine_conformance import cases
from tests.read.file_engine import FileEngine, allow_engines

#: Without a JVM there are neither dynamic buckets for keys that are NULL nor files other than Parquet.
_TOPICS = ("aggregation", "changelog", "partial-update", "first-row", "record-level-expire")


@pytest.mark.parametrize("case", cases(_TOPICS), ids=lambda case: case.id)
def test_a_table_of_files_has_the_rows_of_the_case(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sketch" in str(case.body["options"]) and not sketches_installed():
        pytest.skip("the package datasketches is not installed")
    allow_engines(monkeypatch)
    outcome = run_table_case(case, FileEngine(tmp_path))
    assert outcome.status is Status.PASSED, outcome.text()
