"""The options of `spark.read.format("lakelsm")`, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field

from lakelsm.arguments import checked_branch, checked_condition, checked_time, invalid_argument
from lakelsm.errors import InvalidInputError
from lakelsm.table.readable_table import ReadableTable
from lakelsm.table.table import Table

#: The options, in the order of messages.
NAMES = ("path", "warehouse", "snapshot-id", "tag-name", "timestamp", "branch", "columns", "where")
_POINTS = ("snapshot-id", "tag-name", "timestamp")
#: Beginnings of the settings of object stores, as in `storage_options` of a catalog. Spark's readers of Python ignore
#: the case of options, so the names of environment variables are written in capitals again.
_STORAGE_KEYS = ("fs.", "s3a.", "s3.", "gs.", "azure.")
_STORAGE_VARIABLES = ("aws_", "google_", "azure_")


@dataclass(frozen=True)
class ReadOptions:
    """A table, one of its snapshots, and what is read. ``location`` is a path, or a table's name in a ``warehouse``."""

    location: str
    _: KW_ONLY
    warehouse: str | None = None
    point: tuple[str, str] | None = None
    branch: str | None = None
    columns: tuple[str, ...] | None = None
    where: str | None = None
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(given: Mapping[str, str]) -> ReadOptions:
        """Check options, whose names have any case. Raises InvalidInputError for unknown and contradicting ones."""
        options = {str(name).lower(): str(value) for name, value in given.items()}
        storage = {name: options.pop(name) for name in list(options) if _is_of_storage(name)}
        unknown = sorted(options.keys() - set(NAMES))
        if unknown:
            raise InvalidInputError(f"option {unknown[0]!r}: format('lakelsm') has no such option. {_KNOWN}")
        location = options.get("path", "").strip()
        if not location:
            raise InvalidInputError("option 'path': the table is missing. Pass its directory or URI to load().")
        points = [(name, options[name]) for name in _POINTS if name in options]
        if len(points) > 1:
            names = " and ".join(repr(name) for name, _ in points)
            raise InvalidInputError(f"options {names} exclude each other. Pass one of them.")
        return ReadOptions(
            location,
            warehouse=options.get("warehouse"),
            point=points[0] if points else None,
            branch=checked_branch("option 'branch'", options["branch"]) if "branch" in options else None,
            columns=_columns(options["columns"]) if "columns" in options else None,
            where=checked_condition(options.get("where")),
            storage={name.upper() if name.startswith(_STORAGE_VARIABLES) else name: storage[name] for name in storage},
        )

    def opened(self) -> ReadableTable:
        """Open the table: a view if an option names a snapshot."""
        table = self._table()
        if self.branch is not None:
            table = table.branches.open(self.branch)
        if self.point is None:
            return table
        name, value = self.point
        if name == "tag-name":
            return table.at(tag=value)
        if name == "timestamp":
            checked_time("option 'timestamp'", value)
            return table.at(timestamp=value)
        if not value.isascii() or not value.isdigit():
            raise invalid_argument("option 'snapshot-id'", f"{value!r} is not the id of a snapshot.")
        return table.at(snapshot=int(value))

    def _table(self) -> Table:
        if self.warehouse is None:
            return Table.for_path(self.location, storage_options=self.storage)
        from lakelsm.catalog import Catalog

        return Catalog(self.warehouse, storage_options=self.storage).table(self.location)


_KNOWN = f"Options: {', '.join(NAMES)}, and the settings of an object store (fs.…, aws_…)."


def _is_of_storage(name: str) -> bool:
    return name.startswith((*_STORAGE_KEYS, *_STORAGE_VARIABLES))


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InvalidInputError(f"option 'columns': {text!r} has an empty name. Write names as in 'id, city'.")
    return names
