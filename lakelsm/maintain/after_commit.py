"""The maintenance that follows each commit of a table that is not ``write-only``, in the order of `TableCommitImpl`.

A failure never makes a successful commit look failed. It is logged as a warning and is in the result, or in the history.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

from lakelsm.environment import SYSTEM, Environment
from lakelsm.failures import after_commit_step
from lakelsm.maintain.expiry.snapshot_expiry import expire_after_commit
from lakelsm.maintain.history import record_failure
from lakelsm.maintain.partitions.idle_partitions import mark_idle_after_commit
from lakelsm.maintain.partitions.partition_done import mark_done
from lakelsm.maintain.partitions.partition_expiry import expire_partitions_after_commit
from lakelsm.maintain.versions import consumers, tag_creation, tags
from lakelsm.options import ExpireMode
from lakelsm.results import Failure
from lakelsm.snapshots.table_store import TableStore

#: One step. It reads the options itself and does nothing if they do not enable it. It raises its failure, or returns
#: failures that it has logged.
Step: TypeAlias = Callable[[TableStore, Environment], Sequence[Failure] | None]

#: The name of each step, its operation in the history, and the call that does the same. The order is Paimon's: automatic
#: tags, expired tags, partitions, consumers, and snapshots last, because the other steps release snapshots.
STEPS: tuple[tuple[str, str, str, Step], ...] = (
    ("the automatic creation of tags", "create_tag", "tags.create(…)", tag_creation.create_after_commit),
    ("the expiry of tags", "expire_tags", "tags.expire()", tags.expire_after_commit),
    (
        "the expiry of partitions",
        "expire_partitions",
        "maintenance.expire_partitions()",
        expire_partitions_after_commit,
    ),
    ("the expiry of consumers", "expire_consumers", "consumers.expire()", consumers.expire_after_commit),
    ("the expiry of snapshots", "expire_snapshots", "maintenance.expire_snapshots()", expire_after_commit),
)


class _BackgroundSteps:
    """Runs steps of tables in one background thread, one table after the other. A forked process has its own thread."""

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def submit(self, work: Callable[[], None]) -> None:
        """Run ``work`` later. The process does not exit before it has run."""
        self._pool.submit(work)

    def _renew(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="lakelsm-upkeep")


_BACKGROUND = _BackgroundSteps()


def after_commit(
    store: TableStore, written: Collection[bytes] = (), *, environment: Environment = SYSTEM
) -> tuple[Failure, ...]:
    """Run the maintenance that the options enable. On a ``write-only`` table, only mark partitions as done.

    ``written`` are the partitions that a batch wrote to. Return the failed steps, which are logged; no exception is
    raised. Steps in the background (``snapshot.expire.execution-mode`` = 'async') record their failures in the table's
    history.
    """
    failures: list[Failure] = []
    if written and store.options.partition_end_input_to_done:
        mark = partial(mark_done, store, written, environment)
        failures += _attempt(store, "marking partitions as done", "maintenance.mark_partitions_done()", mark)
    idle = partial(mark_idle_after_commit, store, environment)
    call = "maintenance.mark_partitions_done(idle_only=True)"
    failures += _attempt(store, "marking idle partitions as done", call, idle)
    if store.options.write_only:
        return tuple(failures)
    if store.options.snapshot_expire_execution_mode is ExpireMode.ASYNC:
        submit = partial(_BACKGROUND.submit, partial(_run_in_background, store, environment))
        failures += _attempt(store, "starting the maintenance", "maintenance.expire_snapshots()", submit)
    else:
        failures += _run_steps(store, environment)
    return tuple(failures)


def _run_steps(store: TableStore, environment: Environment) -> list[Failure]:
    failures: list[Failure] = []
    for what, _, call, step in STEPS:
        failures += _attempt(store, what, call, partial(step, store, environment))
    return failures


def _run_in_background(store: TableStore, environment: Environment) -> None:
    for what, operation, call, step in STEPS:
        started = environment.clock()
        for failure in _attempt(store, what, call, partial(step, store, environment)):
            record_failure(store, operation, failure.error, started, environment)


def _attempt(store: TableStore, what: str, call: str, work: Callable[[], Sequence[Failure] | None]) -> list[Failure]:
    advice = f"It is retried after the next commit; table.{call} does it now."
    with after_commit_step(store.name, what, advice) as failures:
        failures += work() or ()
    return failures
