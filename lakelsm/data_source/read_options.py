"""The options of `spark.read.format("lakelsm")`, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

from lakelsm.arguments import checked_condition, checked_snapshot_id, checked_tag, checked_time
from lakelsm.data_source.table_location import (
    LOCATION_NAMES,
    CatalogTable,
    Location,
    TableLocation,
    checked_options,
    whole_number,
)
from lakelsm.errors import InvalidInputError
from lakelsm.table.readable_table import ReadableTable

_POINTS = ("snapshot-id", "tag-name", "timestamp")
_NAMES = (*LOCATION_NAMES, *_POINTS, "columns", "where")


@dataclass(frozen=True)
class ReadOptions:
    """A table, one of its snapshots, and what is read. ``point`` is an option that names a snapshot, and its value."""

    location: Location
    _: KW_ONLY
    point: tuple[str, str] | None = None
    columns: tuple[str, ...] | None = None
    where: str | None = None

    @staticmethod
    def of(given: Mapping[str, str], registered: CatalogTable | None = None) -> ReadOptions:
        """Check options, whose names have any case. Raises InvalidInputError for unknown and contradicting ones.

        The options of a ``registered`` table are those of one query.
        """
        options = checked_options(given, _NAMES, "read", of=registered)
        points = [(name, options[name]) for name in _POINTS if name in options]
        if len(points) > 1:
            names = " and ".join(repr(name) for name, _ in points)
            raise InvalidInputError(f"options {names} exclude each other. Pass one of them.")
        return ReadOptions(
            registered or TableLocation.of(options),
            point=points[0] if points else None,
            columns=column_names(options["columns"]) if "columns" in options else None,
            where=checked_condition(options.get("where")),
        )

    def opened(self) -> ReadableTable:
        """Open the table: a view if an option names a snapshot."""
        table = self.location.opened()
        if self.point is None:
            return table
        name, value = self.point
        if name == "tag-name":
            return table.at(tag=checked_tag("option 'tag-name'", value))
        if name == "timestamp":
            checked_time("option 'timestamp'", value)
            return table.at(timestamp=value)
        number = whole_number(name, value, "the id of a snapshot")
        return table.at(snapshot=checked_snapshot_id("option 'snapshot-id'", number))


def column_names(text: str) -> tuple[str, ...]:
    """Return the names of the option 'columns'."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InvalidInputError(f"option 'columns': {text!r} has an empty name. Write names as in 'id, city'.")
    return names
