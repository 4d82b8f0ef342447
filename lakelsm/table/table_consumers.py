"""`Table.consumers`: readers whose next snapshot expiry keeps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from lakelsm.arguments import checked_age, checked_consumer, checked_flag, checked_number
from lakelsm.environment import SYSTEM
from lakelsm.maintain.history import recorded
from lakelsm.maintain.versions.consumers import (
    consumer_bound,
    consumer_infos,
    delete_consumer,
    expire_consumers,
    record_consumer,
)
from lakelsm.operation_log import logged
from lakelsm.results import ConsumerExpiryResult, ConsumerInfo
from lakelsm.table.opened_table import OpenedTable


class TableConsumers(OpenedTable):
    """The consumers of a table."""

    def list(self) -> Sequence[ConsumerInfo]:
        """Return the consumers of the table, by name."""
        return consumer_infos(self._store())

    @logged("record_consumer")
    def record(self, consumer_id: str, next_snapshot: int, *, dry_run: bool = False) -> None:
        """Record the next snapshot of a new or existing consumer, which may be an earlier one than before.

        Record it only after the changes before it are processed: a crash then loses none. ``dry_run`` records nothing.
        Raises InvalidInputError for a snapshot after the next commit, SnapshotNotFoundError for one that has expired.
        """
        name = checked_consumer("consumer_id", consumer_id, optional=False)
        number, dry = checked_number("next_snapshot", next_snapshot, min_value=1), checked_flag("dry_run", dry_run)
        record_consumer(self._store().for_changes(), name, number, dry_run=dry)

    @logged("delete_consumer")
    def delete(self, consumer_id: str, *, dry_run: bool = False) -> None:
        """Delete a consumer; expiry then keeps nothing for it. Raises InvalidInputError if it does not exist.

        ``dry_run`` deletes nothing.
        """
        name, dry = checked_consumer("consumer_id", consumer_id, optional=False), checked_flag("dry_run", dry_run)
        delete_consumer(self._store().for_changes(), name, dry_run=dry)

    @logged("expire_consumers")
    def expire(
        self, older_than: timedelta | datetime | float | str | None = None, *, dry_run: bool = False
    ) -> ConsumerExpiryResult:
        """Delete consumers whose progress was last recorded before an age ('7 days', a timedelta, seconds) or a time.

        The default is ``consumer.expiration-time``; raises InvalidInputError if neither is set. ``dry_run`` deletes
        nothing.
        """
        age, dry = checked_age("older_than", older_than), checked_flag("dry_run", dry_run)
        store = self._store().for_changes()
        before = consumer_bound(store, age, SYSTEM.clock())
        with recorded(store, "expire_consumers", dry_run=dry):
            return expire_consumers(store, before, dry_run=dry)
