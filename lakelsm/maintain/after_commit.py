"""What follows each commit of a table that is not ``write-only``, in the order of Paimon's `TableCommitImpl`.

None of it makes a commit that succeeded look failed: each failure is in the result (or the history) and a warning.
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
from lakelsm.maintain.partitions.partition_done import mark_done
from lakelsm.maintain.partitions.partition_expiry import expire_partitions_after_commit
from lakelsm.maintain.versions import consumers, tag_creation, tags
from lakelsm.options import ExpireMode
from lakelsm.results import Failure
from lakelsm.snapshots.table_store import TableStore

#: One step: it looks at the options itself and does nothing where they do not ask for it. It raises its failure, or
#: returns those that it has warned of.
Step: TypeAlias = Callable[[TableStore, Environment], Sequence[Failure] | None]

#: The name of each step, its operation in the history, and the call that does the same. Paimon's order: automatic tags,
#: expired tags, partitions, consumers, and snapshots last, so that snapshots which the others kept can expire.
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


class _Beside:
    """Does the upkeep of tables that do not wait for it, one after the other; a process that is forked has its own."""

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def submit(self, work: Callable[[], None]) -> None:
        """Do it some time; the process ends when it is done."""
        self._pool.submit(work)

    def _renew(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="lakelsm-upkeep")


_BESIDE = _Beside()


def after_commit(
    store: TableStore, written: Collection[bytes] = (), *, environment: Environment = SYSTEM
) -> tuple[Failure, ...]:
    """Run the upkeep of the options after a commit; on a ``write-only`` table only mark partitions as done.

    ``written`` are the partitions that a batch wrote to. Returns the steps that failed, of which it has warned; no
    Exception leaves it. Steps that a thread takes beside (``snapshot.expire.execution-mode`` = 'async') record their
    failures in the table's history.
    """
    failures: list[Failure] = []
    if written and store.options.partition_end_input_to_done:
        mark = partial(mark_done, store, written, environment)
        failures += _attempt(store, "marking partitions as done", "maintenance.mark_partitions_done()", mark)
    if store.options.write_only:
        return tuple(failures)
    if store.options.snapshot_expire_execution_mode is ExpireMode.ASYNC:
        beside = partial(_BESIDE.submit, partial(_take_steps_beside, store, environment))
        failures += _attempt(store, "starting the upkeep", "maintenance.expire_snapshots()", beside)
    else:
        failures += _take_steps(store, environment)
    return tuple(failures)


def _take_steps(store: TableStore, environment: Environment) -> list[Failure]:
    failures: list[Failure] = []
    for what, _, call, step in STEPS:
        failures += _attempt(store, what, call, partial(step, store, environment))
    return failures


def _take_steps_beside(store: TableStore, environment: Environment) -> None:
    for what, operation, call, step in STEPS:
        started = environment.clock()
        for failure in _attempt(store, what, call, partial(step, store, environment)):
            record_failure(store, operation, failure.error, started, environment)


def _attempt(store: TableStore, what: str, call: str, work: Callable[[], Sequence[Failure] | None]) -> list[Failure]:
    advice = f"It is tried again after the next commit; table.{call} does it at once."
    with after_commit_step(store.name, what, advice) as failures:
        failures += work() or ()
    return failures
