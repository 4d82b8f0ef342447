"""What follows each commit of a table that is not ``write-only``, in the order of Paimon's `TableCommitImpl`.

None of it makes a commit that succeeded look failed: what goes wrong is a warning that names the table and the remedy.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

from lakelsm.errors import LakelsmError
from lakelsm.maintain.expiry.snapshot_expiry import expire_after_commit
from lakelsm.maintain.partitions.partition_done import mark_done
from lakelsm.maintain.partitions.partition_expiry import expire_partitions_after_commit
from lakelsm.maintain.versions import consumers, tag_creation, tags
from lakelsm.options import ExpireMode
from lakelsm.snapshots.table_store import TableStore
from lakelsm.surroundings import SYSTEM, Surroundings

#: One step: it looks at the options itself and does nothing where they do not ask for it.
Step: TypeAlias = Callable[[TableStore, Surroundings], object]

#: What each step is called, and the call that does the same by hand. Paimon's order: automatic tags, tags that are past
#: their time, partitions, consumers, and snapshots last, so that what the others let go can expire.
STEPS: tuple[tuple[str, str, Step], ...] = (
    ("the automatic creation of tags", "create_tag(...)", tag_creation.create_after_commit),
    ("the expiry of tags", "expire_tags()", tags.expire_after_commit),
    ("the expiry of partitions", "expire_partitions()", expire_partitions_after_commit),
    ("the expiry of consumers", "expire_consumers()", consumers.expire_after_commit),
    ("the expiry of snapshots", "expire_snapshots()", expire_after_commit),
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
    store: TableStore, written: Collection[bytes] = (), *, surroundings: Surroundings = SYSTEM
) -> None:
    """Do what options ask for after a commit, for a ``write-only`` table nothing but to mark partitions as done.

    ``written`` are the partitions that a batch wrote to.
    """
    if written and store.options.partition_end_input_to_done:
        mark = partial(mark_done, store, written, surroundings)
        _attempt(store, "marking partitions as done", "mark_partitions_done()", mark)
    if store.options.write_only:
        return
    if store.options.snapshot_expire_execution_mode is ExpireMode.ASYNC:
        _BESIDE.submit(partial(_take_steps, store, surroundings))
    else:
        _take_steps(store, surroundings)


def _take_steps(store: TableStore, surroundings: Surroundings) -> None:
    for what, remedy, step in STEPS:
        _attempt(store, what, remedy, partial(step, store, surroundings))


def _attempt(store: TableStore, what: str, remedy: str, work: Callable[[], object]) -> None:
    try:
        work()
    except (LakelsmError, OSError) as error:
        warnings.warn(
            f"Table {store.name}: the commit succeeded, and {what} after it failed: {error} It is tried again after "
            f"the next commit; Table.{remedy} does it at once.",
            stacklevel=3,
        )
