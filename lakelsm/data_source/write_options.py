"""The options of `frame.write.format("lakelsm")`, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

from lakelsm.data_source.table_location import (
    LOCATION_NAMES,
    CatalogTable,
    Location,
    TableLocation,
    checked_options,
    whole_number,
)
from lakelsm.errors import InvalidInputError

#: Options of writes that reads do not have.
BATCH_NAMES = ("commit-user", "batch-id")


@dataclass(frozen=True)
class WriteOptions:
    """A table, and the identity of the batch as in `Table.write`."""

    location: Location
    _: KW_ONLY
    commit_user: str | None = None
    batch_id: int | None = None

    @staticmethod
    def of(given: Mapping[str, str], registered: CatalogTable | None = None) -> WriteOptions:
        """Check options, whose names have any case. Raises InvalidInputError for unknown and wrong ones.

        The options of a ``registered`` table are those of one statement.
        """
        options = checked_options(given, (*LOCATION_NAMES, *BATCH_NAMES), "write", of=registered)
        user, batch = options.get("commit-user"), options.get("batch-id")
        number = None if batch is None else whole_number("batch-id", batch, "a number from 0")
        if number is not None and user is None:
            raise InvalidInputError("option 'batch-id': option 'commit-user' is missing. A batch is identified by both.")
        return WriteOptions(registered or TableLocation.of(options), commit_user=user, batch_id=number)
