"""A failure that does not undo what an operation committed: a plain value of its result, a warning and a line of the log.

A commit that is visible cannot fail any more. So a later step that fails (the compaction after a write, an expiry, the
LATEST hint) is reported by these functions, and its exception does not reach the caller.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from lakelsm.errors import LakelsmError, with_outcome
from lakelsm.results.failure import Failure, error_text
from lakelsm.secret_values import shown_text

_LOG = logging.getLogger("lakelsm.commit")


def logged_text(error: BaseException) -> str:
    """The message of an error, for a line of the log: one line without secrets."""
    return shown_text(error_text(error))


def warn_after_commit(text: str) -> None:
    """Issue a failure after a commit as a UserWarning, and log it where a handler is installed.

    Without a handler logging would print it on standard error, where the UserWarning is already. No Exception leaves it:
    neither where warnings are errors, nor from a logging handler or a `warnings.showwarning` of the user's.
    """
    warn_and_log(_LOG, text)


def warn_and_log(logger: logging.Logger, text: str, category: type[Warning] = UserWarning) -> None:
    """Issue a Python warning of what does not end the work, and log it as `warn_after_commit` does."""
    shown = shown_text(text)
    with suppress(Exception):
        if logger.hasHandlers():
            logger.warning("%s", shown)
    with suppress(Exception):
        warnings.warn(shown, category, stacklevel=3)


@contextmanager
def after_commit_step(
    table: str, step: str, remedy: str, *, done: str = "the commit"
) -> Iterator[list[Failure]]:
    """Take a step that follows a commit to a table: an Exception within becomes a warning and is not raised.

    The list that it yields has the failure afterwards. ``remedy`` is a sentence; ``done`` is what succeeded.
    """
    failures: list[Failure] = []
    try:
        yield failures
    except Exception as error:  # noqa: BLE001  The commit stands, whatever it is.
        failures.append(Failure.of(error, step, remedy))
        reason = failures[-1].text.rstrip(".")
        warn_after_commit(f"Table {table}: {done} succeeded, and {step} after it failed: {reason}. {remedy}")


@contextmanager
def report_schema_on_failure(table: str, schema_id: int, changes: Sequence[object]) -> Iterator[None]:
    """An error within says that a schema with these changes is published. Without changes it is not modified."""
    text = f"The schema changes that were made first stand: schema {schema_id} has {', '.join(map(str, changes))}."
    try:
        yield
    except LakelsmError as error:
        if not changes:
            raise
        raise with_outcome(error, text) from (error.__cause__ or error)
    except BaseException as error:
        if changes:
            _add_note(error, f"Table {table}: {text}")
        raise


@contextmanager
def note_if_interrupted(table: str, snapshot_ids: Sequence[int]) -> Iterator[None]:
    """An interruption within (KeyboardInterrupt, SystemExit) says that these snapshots are committed.

    It has them as the attribute ``committed_snapshot_ids`` (a tuple) and in a note of its traceback, and the log has a
    line. Its class and arguments stay. Exceptions are the caller's concern.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as interruption:
        add_commit_note(interruption, table, snapshot_ids)
        raise


def add_commit_note(interruption: BaseException, table: str, snapshot_ids: Sequence[int]) -> None:
    """Say on an interruption which snapshots of a table are committed."""
    known = getattr(interruption, "committed_snapshot_ids", ())
    new = [number for number in snapshot_ids if number not in known]
    if not new:
        return
    shown = f"snapshot {new[0]}" if len(new) == 1 else f"snapshots {', '.join(map(str, new))}"
    text = f"Table {table}: interrupted after the commit; {shown} is committed. Do not write the same rows again."
    with suppress(Exception):
        interruption.committed_snapshot_ids = (*known, *new)  # type: ignore[attr-defined]
        _add_note(interruption, text)


def _add_note(error: BaseException, text: str) -> None:
    """Add a note to a traceback, and log it. Python 3.11 prints notes; the attribute works on every version."""
    with suppress(Exception):
        error.__notes__ = [*getattr(error, "__notes__", ()), text]  # type: ignore[attr-defined]
        _LOG.warning("%s", text)
