"""The watermark of a batch: the maximum of its event times less a delay (Paimon's ``watermark`` of a snapshot).

A watermark says that later batches have no earlier events, except for late ones. Tasks compute the maximum from the rows
that they write, so it needs no pass of its own, and all rows of the batch count, also those that the batch itself
replaces. A row whose event time is NULL does not count.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from datetime import timedelta, timezone, tzinfo

import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.arguments import checked_age, checked_name, invalid_argument
from lakelsm.epoch_time import FIRST_MILLIS, LAST_MILLIS, wall_time
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types.data_types import AtomicType
from lakelsm.types.nano_timestamps import nanos_of

#: The types of a column of event times.
_TYPES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
_DAY_MILLIS = 86_400_000


@dataclass(frozen=True)
class EventTime:
    """The checked arguments of a write: the name of a column, and the delay of the watermark in milliseconds.

    ``argument`` is the name of the first argument or option, for errors.
    """

    column: str
    delay: int
    _: KW_ONLY
    argument: str = "event_time"

    @staticmethod
    def checked(
        column: object, delay: object, names: tuple[str, str] = ("event_time", "event_time_delay")
    ) -> EventTime | None:
        """Check the arguments (``names`` has their names for errors); None if both are left out."""
        age = checked_age(names[1], delay, moments=False)
        if column is None:
            if age is not None:
                raise invalid_argument(names[1], f"{names[0]} is missing.", "It names the column of the event times.")
            return None
        name = str(checked_name(names[0], column, "the name of a column as text"))
        return EventTime(name, 0 if age is None else int((age.seconds or 0) * 1000), argument=names[0])

    def in_table(self, store: TableStore) -> EventTimeColumn:
        """Return the column of a table. Raises InvalidInputError if it does not exist, or has no event times."""
        name = store.schema.column_name(self.column)
        kind = store.schema.field(name).type
        if not isinstance(kind, AtomicType) or kind.root not in _TYPES:
            raise invalid_argument(
                self.argument, f"column {name!r} is of type {kind}.", "Name a column of type DATE or TIMESTAMP."
            )
        zone = timezone.utc if kind.root == "TIMESTAMP_LTZ" else store.text_zone
        return EventTimeColumn(name, self.delay, zone)


@dataclass(frozen=True)
class EventTimeColumn:
    """A table's column of event times; pickled with the job of the tasks.

    Values without a time zone (DATE, the start of the day; TIMESTAMP) are times on a clock of ``zone``: the table's
    (option ``lakelsm.time-zone``), else UTC.
    """

    name: str
    delay: int
    zone: tzinfo

    def newest(self, rows: pa.Table, before: int | None) -> int | None:
        """Return the maximum of ``before`` and of the rows, in milliseconds since 1970 on the column's clock."""
        found = pc.max(rows.column(self.name))
        if not found.is_valid:
            return before
        millis = int(found.value) * _DAY_MILLIS if pa.types.is_date(found.type) else nanos_of(found) // 1_000_000
        return millis if before is None else max(before, millis)

    def watermark(self, newest: int | None) -> int | None:
        """Return the watermark for the result of `newest`: epoch milliseconds of the years 1 to 9999."""
        if newest is None:
            return None
        newest = _within_years(newest)
        ahead = wall_time(newest, "an event time").replace(tzinfo=self.zone).utcoffset() or timedelta(0)
        return _within_years(newest - ahead // timedelta(milliseconds=1) - self.delay)


def _within_years(millis: int) -> int:
    return min(max(millis, FIRST_MILLIS), LAST_MILLIS)
