"""Results: typed for programs, plain texts for schedulers."""

from __future__ import annotations

import json

import pytest

from lakelsm.results import CompactionResult, CompactionStatus, Failure


@pytest.mark.parametrize("status", CompactionStatus)
def test_a_status_equals_its_text(status: CompactionStatus) -> None:
    text = status.value
    assert status == text and str(status) == text and f"{status}" == text and {text: 1}[status] == 1
    assert json.dumps({"status": status}) == f'{{"status": "{text}"}}'


def test_the_texts_of_the_statuses_do_not_change() -> None:
    texts = [status.value for status in CompactionStatus]
    assert texts == ["done", "nothing", "conflict", "failed", "deadline", "planned"]


@pytest.mark.parametrize("status", CompactionStatus)
def test_a_compaction_has_an_error_exactly_if_it_conflicted_or_failed(status: CompactionStatus) -> None:
    failure = Failure(step="the commit", error="CommitConflictError", kind="retry", text="lost", remedy="again")
    error = failure if status in (CompactionStatus.CONFLICT, CompactionStatus.FAILED) else None
    made = CompactionResult(table="d.t", status=status, error=error)
    assert made.as_dict()["error"] == (None if error is None else "lost")
    with pytest.raises(ValueError, match="error must be set"):
        CompactionResult(table="d.t", status=status, error=failure if error is None else None)


def test_a_result_as_a_dictionary_has_plain_values_only() -> None:
    found = CompactionResult(table="d.t", status=CompactionStatus.DONE, snapshot_ids=(3, 4), rows_read=7).as_dict()
    assert type(found["status"]) is str
    assert (found["table"], found["status"], found["snapshot_ids"], found["rows_read"]) == ("d.t", "done", (3, 4), 7)


def test_results_take_their_values_by_name() -> None:
    with pytest.raises(TypeError):
        CompactionResult("d.t", CompactionStatus.DONE)  # type: ignore[misc]
