"""Failures after a commit: a value in the result, a warning, a log line, and no exception."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from lakelsm.failures import after_commit_step, note_if_interrupted


def test_a_failed_step_after_a_commit_warns_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    text = "Table d.t: the commit succeeded, and the hint after it failed: ZeroDivisionError: no. Nothing to do."
    with pytest.warns(UserWarning) as warned, after_commit_step("d.t", "the hint", "Nothing to do.") as failures:
        raise ZeroDivisionError("no")
    assert [each.text for each in failures] == ["ZeroDivisionError: no"]
    assert [str(each.message) for each in warned] == [record.getMessage() for record in caplog.records] == [text]
    with after_commit_step("d.t", "the hint", "Nothing to do.") as failures:
        pass
    assert failures == []


def test_an_interruption_keeps_its_class_and_names_each_commit_once() -> None:
    with pytest.raises(SystemExit) as raised, note_if_interrupted("d.t", [3, 4]), note_if_interrupted("d.t", [4]):
        raise SystemExit(3)
    assert raised.value.code == 3
    assert raised.value.committed_snapshot_ids == (4, 3)  # type: ignore[attr-defined]
    assert "snapshot 4 is committed" in raised.value.__notes__[0]
    with pytest.raises(KeyboardInterrupt) as interrupted, note_if_interrupted("d.t", []):
        raise KeyboardInterrupt
    assert not hasattr(interrupted.value, "committed_snapshot_ids")
    with pytest.raises(ValueError, match="x") as other, note_if_interrupted("d.t", [3]):
        raise ValueError("x")
    assert not hasattr(other.value, "committed_snapshot_ids")


def test_the_library_adds_no_handler_to_a_logger() -> None:
    assert logging.getLogger("lakelsm.commit").handlers == []


def test_a_failure_is_a_warning_and_with_logging_also_a_record() -> None:
    said = "from lakelsm.failures import warn_after_commit; warn_after_commit('the hint failed')"
    for setup, most in (("", 1), ("import logging; logging.basicConfig(format='%(levelname)s %(message)s'); ", 2)):
        run = subprocess.run([sys.executable, "-c", setup + said], capture_output=True, text=True, check=True)
        assert run.stderr.count("the hint failed") == most
        assert "UserWarning: the hint failed" in run.stderr and ("WARNING the hint failed" in run.stderr) == (most == 2)
