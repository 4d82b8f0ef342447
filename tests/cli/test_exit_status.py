"""The kind of an error decides the exit status."""

from __future__ import annotations

import pytest

from lakelsm import errors
from lakelsm.cli.exit_status import ExitStatus, status_of, status_of_kind, worst
from lakelsm.errors import ErrorKind, LakelsmError


@pytest.mark.parametrize("name", [name for name, each in vars(errors).items() if hasattr(each, "kind")])
def test_the_exit_status_follows_the_kind_of_the_error(name: str) -> None:
    error: LakelsmError = getattr(errors, name)("no")
    own = {ErrorKind.RETRY: ExitStatus.CONFLICT, ErrorKind.CORRUPT: ExitStatus.FINDINGS}
    assert status_of(error) is status_of_kind(error.kind.value) is own.get(error.kind, ExitStatus.FAILED)


def test_an_error_of_another_library_is_a_failure() -> None:
    assert status_of(OSError(28, "No space left on device")) is ExitStatus.FAILED


def test_the_numbers_of_exit_statuses_do_not_change() -> None:
    assert {status.name: status.value for status in ExitStatus} == {
        "DONE": 0,
        "FAILED": 1,
        "USAGE": 2,
        "NOTHING_TO_DO": 3,
        "CONFLICT": 4,
        "FINDINGS": 5,
        "INTERRUPTED": 130,
    }


def test_the_status_of_several_outcomes_is_the_worst() -> None:
    done, nothing = ExitStatus.DONE, ExitStatus.NOTHING_TO_DO
    assert worst([nothing, nothing]) is nothing
    assert worst([nothing, done]) is done
    assert worst([done, ExitStatus.CONFLICT, nothing]) is ExitStatus.CONFLICT
    assert worst([ExitStatus.CONFLICT, ExitStatus.FINDINGS]) is ExitStatus.FINDINGS
    assert worst([ExitStatus.FINDINGS, ExitStatus.FAILED, done]) is ExitStatus.FAILED
