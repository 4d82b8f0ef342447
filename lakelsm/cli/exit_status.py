"""Exit statuses: what a scheduler learns of an outcome without reading it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from lakelsm.errors import ErrorKind, LakelsmError


class ExitStatus(IntEnum):
    """What the exit status of a command says. Schedulers depend on the numbers: do not change."""

    DONE = 0
    FAILED = 1
    USAGE = 2  # argparse's own
    NOTHING_TO_DO = 3
    CONFLICT = 4
    FINDINGS = 5


#: Of several tables or steps the first of these that any ended with is told.
_GRAVEST_FIRST = (
    ExitStatus.FAILED, ExitStatus.FINDINGS, ExitStatus.CONFLICT, ExitStatus.DONE, ExitStatus.NOTHING_TO_DO
)


def status_of(error: Exception) -> ExitStatus:
    """The status of a command that ended with an error: CONFLICT where the same command may do better next time."""
    if isinstance(error, LakelsmError) and error.kind is ErrorKind.RETRY:
        return ExitStatus.CONFLICT
    return ExitStatus.FAILED


def gravest(statuses: Iterable[ExitStatus]) -> ExitStatus:
    """What is told of several outcomes: the gravest, and NOTHING_TO_DO only where no one had anything to do."""
    return min(statuses, key=_GRAVEST_FIRST.index)
