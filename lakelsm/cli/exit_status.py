"""Exit statuses: what a scheduler learns of an outcome without reading it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from lakelsm.errors import ErrorKind, LakelsmError


class ExitStatus(IntEnum):
    """The exit statuses of a command. Schedulers depend on the numbers: do not change."""

    DONE = 0
    FAILED = 1
    USAGE = 2  # argparse's own
    NOTHING_TO_DO = 3
    CONFLICT = 4
    FINDINGS = 5  # A check found errors, or a command met a file of the table that is missing or damaged.


#: For several tables or steps, the first of these that any of them ended with.
_WORST_FIRST = (
    ExitStatus.FAILED, ExitStatus.FINDINGS, ExitStatus.CONFLICT, ExitStatus.DONE, ExitStatus.NOTHING_TO_DO
)


_OF_KINDS = {ErrorKind.RETRY.value: ExitStatus.CONFLICT, ErrorKind.CORRUPT.value: ExitStatus.FINDINGS}


def status_of(error: Exception) -> ExitStatus:
    """The status of a command that ended with an error."""
    return status_of_kind(error.kind.value if isinstance(error, LakelsmError) else None)


def status_of_kind(kind: str | None) -> ExitStatus:
    """The status for an error of a kind: CONFLICT if it may succeed later, FINDINGS if a file is damaged."""
    return _OF_KINDS.get(kind or "", ExitStatus.FAILED)


def worst(statuses: Iterable[ExitStatus]) -> ExitStatus:
    """The status of several outcomes: the most severe, and NOTHING_TO_DO only if all had nothing to do."""
    return min(statuses, key=_WORST_FIRST.index)
