"""What follows each commit of a table that is not ``write-only``, in the order of Paimon's `TableCommitImpl`.

None of it makes a commit that succeeded look failed: what goes wrong is a warning that names the table and the remedy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeAlias

from lakelsm.errors import LakelsmError
from lakelsm.snapshots.table_store import TableStore
from lakelsm.surroundings import SYSTEM, Surroundings

#: One step: it looks at the options itself and does nothing where they do not ask for it.
Step: TypeAlias = Callable[[TableStore, Surroundings], object]

#: What each step is called, and the call that does the same by hand. Paimon's order: automatic tags, tags that are past
#: their time, partitions, consumers, and snapshots last, so that what the others let go can expire.
STEPS: tuple[tuple[str, str, Step], ...] = ()


def after_commit(store: TableStore, *, surroundings: Surroundings = SYSTEM) -> None:
    """Do what options ask for after a commit; nothing for a ``write-only`` table."""
    if store.options.write_only:
        return
    for what, remedy, step in STEPS:
        try:
            step(store, surroundings)
        except (LakelsmError, OSError) as error:
            warnings.warn(
                f"Table {store.name}: the commit succeeded, and {what} after it failed: {error} It is tried again after "
                f"the next commit; Table.{remedy} does it at once.",
                stacklevel=2,
            )
