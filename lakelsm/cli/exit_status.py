"""Exit statuses, by which a scheduler decides without reading a report."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from lakelsm.errors import ErrorKind, LakelsmError


class ExitStatus(IntEnum):
    """The exit statuses of a command. Schedulers depend on the numbers: do not change."""

    DONE = 0
    FAILED = 1
    USAGE = 2  # the exit status of argparse
    NOTHING_TO_DO = 3
    CONFLICT = 4
    FINDINGS = 5  # A check found errors, or a file of the table is missing or damaged.
    INTERRUPTED = 130  # As shells report a process that SIGINT ended.


#: The exit status of several tables or steps is the first of these that one of them has.
_WORST_FIRST = (
    ExitStatus.FAILED, ExitStatus.FINDINGS, ExitStatus.CONFLICT, ExitStatus.DONE, ExitStatus.NOTHING_TO_DO
)


_STATUS_OF_KIND = {ErrorKind.RETRY.value: ExitStatus.CONFLICT, ErrorKind.CORRUPT.value: ExitStatus.FINDINGS}


def status_of(error: Exception) -> ExitStatus:
    """Return the exit status of a command that an error ended."""
    return status_of_kind(error.kind.value if isinstance(error, LakelsmError) else None)


def status_of_kind(kind: str | None) -> ExitStatus:
    """Return the exit status for an `ErrorKind`: CONFLICT if a retry may succeed, FINDINGS if a file is damaged."""
    return _STATUS_OF_KIND.get(kind or "", ExitStatus.FAILED)


def worst(statuses: Iterable[ExitStatus]) -> ExitStatus:
    """Return the exit status of several outcomes: the worst one; NOTHING_TO_DO only if no run had anything to do."""
    return min(statuses, key=_WORST_FIRST.index)
