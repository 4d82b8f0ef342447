"""The options of `frame.write.format("lakelsm")` and `frame.writeStream.format("lakelsm")`, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

from lakelsm.commit.commit_identity import checked_commit_user
from lakelsm.data_source.table_location import (
    LOCATION_NAMES,
    CatalogTable,
    Location,
    TableLocation,
    checked_options,
    whole_number,
)
from lakelsm.errors import InvalidInputError
from lakelsm.write.event_time import EventTime

#: Options of writes that reads do not have: of all writes, of batches and of streams.
_ROW_NAMES = ("commit-user", "row-kind", "event-time", "event-time-delay")
BATCH_NAMES = (*_ROW_NAMES, "batch-id")
_STREAM_NAMES = (*_ROW_NAMES, "compact-every")
#: Spark passes these options of a stream, which are its own, to the data source.
_SPARK_NAMES = ("checkpointlocation", "queryname")


@dataclass(frozen=True)
class WriteOptions:
    """A table, the identity of the batch and the row kinds as in `Table.write`.

    A stream has no ``batch_id``, because Spark has it, but ``compact_every`` as in `Table.write_stream`.
    """

    location: Location
    _: KW_ONLY
    commit_user: str | None = None
    batch_id: int | None = None
    row_kind: str | None = None
    event_time: EventTime | None = None
    compact_every: int = 1

    @staticmethod
    def of(given: Mapping[str, str], registered: CatalogTable | None = None) -> WriteOptions:
        """Check the options of a batch, whose names have any case. Raises InvalidInputError for unknown and wrong ones.

        The options of a ``registered`` table are those of one statement.
        """
        options = checked_options(given, (*LOCATION_NAMES, *BATCH_NAMES), "write", of=registered)
        user, batch = options.get("commit-user"), options.get("batch-id")
        number = None if batch is None else whole_number("batch-id", batch, "a number from 0")
        if number is not None and user is None:
            raise InvalidInputError("option 'batch-id': option 'commit-user' is missing. A batch is identified by both.")
        return WriteOptions(
            registered or TableLocation.of(options),
            commit_user=user,
            batch_id=number,
            row_kind=_row_kind(options),
            event_time=_event_time(options),
        )

    @staticmethod
    def of_stream(given: Mapping[str, str], registered: CatalogTable | None = None) -> WriteOptions:
        """Check the options of a stream, as `of`."""
        own = {name: value for name, value in given.items() if name.lower() not in _SPARK_NAMES}
        if any(name.lower() == "batch-id" for name in own):
            raise InvalidInputError("option 'batch-id': the batches of a stream have Spark's ids. Leave it out.")
        options = checked_options(own, (*LOCATION_NAMES, *_STREAM_NAMES), "stream", of=registered)
        user, every = options.get("commit-user"), options.get("compact-every", "1")
        return WriteOptions(
            registered or TableLocation.of(options),
            commit_user=None if user is None else checked_commit_user(user),
            row_kind=_row_kind(options),
            event_time=_event_time(options),
            compact_every=whole_number("compact-every", every, "a number of batches"),
        )


def _row_kind(options: Mapping[str, str]) -> str | None:
    name = options.get("row-kind")
    if name is not None and not name.strip():
        raise InvalidInputError(f"option 'row-kind': {name!r} is not the name of a column.")
    return name


def _event_time(options: Mapping[str, str]) -> EventTime | None:
    names = ("event-time", "event-time-delay")
    column, delay = map(options.get, names)
    return EventTime.checked(column, delay, (f"option {names[0]!r}", f"option {names[1]!r}"))
