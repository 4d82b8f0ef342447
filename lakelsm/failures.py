"""Failures after a commit: a value in the result, a Python warning and a log line.

A visible commit cannot fail any more. If a later step fails (the compaction after a write, an expiry, the LATEST hint),
these functions report it; its exception does not reach the caller.
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
    """Return the message of an error as one line without secrets, for the log."""
    return shown_text(error_text(error))


def warn_after_commit(text: str) -> None:
    """Issue a failure after a commit as a UserWarning, and log it if a handler is installed.

    Without a handler, logging would print it on standard error beside the UserWarning. No Exception is raised, even if
    warnings are errors, or if a logging handler or a `warnings.showwarning` of the user raises one.
    """
    warn_and_log(_LOG, text)


def warn_and_log(logger: logging.Logger, text: str, category: type[Warning] = UserWarning) -> None:
    """Issue a Python warning about a failure that does not end the work, and log it as `warn_after_commit` does."""
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
    """Run a step that follows a commit to a table. An Exception of the step becomes a warning and is not raised.

    Yields a list, which contains the failure afterwards. ``remedy`` is a sentence; ``done`` names what succeeded.
    """
    failures: list[Failure] = []
    try:
        yield failures
    except Exception as error:  # noqa: BLE001  No error can undo the commit.
        failures.append(Failure.of(error, step, remedy))
        reason = failures[-1].text.rstrip(".")
        warn_after_commit(f"Table {table}: {done} succeeded, and {step} after it failed: {reason}. {remedy}")


@contextmanager
def report_schema_on_failure(table: str, schema_id: int, changes: Sequence[object]) -> Iterator[None]:
    """Add to errors within that a schema with these changes is published. Without changes, errors stay the same."""
    text = f"The schema changes are already published: schema {schema_id} has {', '.join(map(str, changes))}."
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
    """Add to interruptions within (KeyboardInterrupt, SystemExit) that these snapshots are committed.

    The interruption gets the attribute ``committed_snapshot_ids`` (a tuple) and a note in its traceback, and a line is
    logged. Its class and arguments stay the same. An Exception passes unchanged.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as interruption:
        add_commit_note(interruption, table, snapshot_ids)
        raise


def add_commit_note(interruption: BaseException, table: str, snapshot_ids: Sequence[int]) -> None:
    """Add the committed snapshots of a table to an interruption, except those that it has already."""
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
    """Add a note to the traceback of an error, and log it. Python 3.11 prints notes; older versions ignore them."""
    with suppress(Exception):
        error.__notes__ = [*getattr(error, "__notes__", ()), text]  # type: ignore[attr-defined]
        _LOG.warning("%s", text)
