"""The options that name a table: for reads and for writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import tzinfo
from typing import TypeAlias

from lakelsm.arguments import checked_branch, checked_location, invalid_argument
from lakelsm.engine import opened_storage
from lakelsm.errors import InvalidInputError
from lakelsm.format.paths import table_path
from lakelsm.format.table_name import TableName
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import FileIO
from lakelsm.table.table import Table

#: The options of a location, in the order of messages.
LOCATION_NAMES = ("path", "warehouse", "branch")
#: Beginnings of the settings of object stores, as in `storage_options` of a catalog. Spark's readers of Python ignore
#: the case of options, so the names of environment variables are written in capitals again.
_STORAGE_KEYS = ("fs.", "s3a.", "s3.", "gs.", "azure.")
_STORAGE_VARIABLES = ("aws_", "google_", "azure_")
#: Digits of the largest number of 64 bits.
_MAX_DIGITS = 19


@dataclass(frozen=True)
class TableLocation:
    """A table. ``location`` is a path or URI, or a table's name in a ``warehouse``."""

    location: str
    _: KW_ONLY
    warehouse: str | None = None
    branch: str | None = None
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(options: Mapping[str, str]) -> TableLocation:
        """Return the location that `checked_options` name."""
        location = options.get("path", "")
        if not location.strip():
            raise InvalidInputError(
                "option 'path': the table is missing. Pass its directory or URI to load() or save(), and use "
                "Catalog.register for tables of the session catalog."
            )
        storage = {name: value for name, value in options.items() if _is_of_storage(name)}
        return TableLocation(
            location,
            warehouse=options.get("warehouse"),
            branch=checked_branch("option 'branch'", options["branch"]) if "branch" in options else None,
            storage={name.upper() if name.startswith(_STORAGE_VARIABLES) else name: storage[name] for name in storage},
        )

    def opened(self) -> Table:
        """Open the table."""
        if self.warehouse is None:
            table = Table.for_path(self.location, storage_options=self.storage)
        else:
            name = TableName.parse(self.location, "option 'path'")
            warehouse = checked_location("option 'warehouse'", self.warehouse)
            file_io, root = opened_storage(warehouse, None, self.storage)
            store = TableStore.within(file_io, table_path(root, name.database, name.table), name.main_name)
            table = Table(store.on_branch(name.branch))
        return table if self.branch is None else table.branches.open(self.branch)


@dataclass(frozen=True)
class CatalogTable:
    """A table of a catalog, which `Catalog.register` gives a name in a session. ``root`` is its directory."""

    name: str
    root: str
    _: KW_ONLY
    file_io: FileIO = field(repr=False)
    time_zone: tzinfo | None = None

    def opened(self) -> Table:
        """Open the table."""
        return Table(replace(TableStore.within(self.file_io, self.root, self.name), catalog_zone=self.time_zone))


#: A table that a data source reads or writes.
Location: TypeAlias = TableLocation | CatalogTable


def checked_options(
    given: Mapping[str, str], names: Collection[str], call: str, *, of: CatalogTable | None = None
) -> dict[str, str]:
    """Return options by name in lower case. Raises InvalidInputError for one that a ``call`` does not have.

    A registered table (``of``) has no options of a location and of an object store.
    """
    options = {str(name).lower(): str(value) for name, value in given.items()}
    known = list(names) if of is None else [name for name in names if name not in LOCATION_NAMES]
    lowered = {name.lower() for name in known}
    unknown = sorted(name for name in options if name not in lowered and not (of is None and _is_of_storage(name)))
    if unknown and of is not None:
        raise InvalidInputError(
            f"option {unknown[0]!r}: a {call} of the registered table {of.name} has no such option. Options: "
            f"{', '.join(known)}."
        )
    if unknown:
        raise InvalidInputError(
            f"option {unknown[0]!r}: a {call} of format('lakelsm') has no such option. Options: {', '.join(known)}, and "
            "the settings of an object store (fs.…, aws_…)."
        )
    return options


def whole_number(name: str, text: str, wanted: str) -> int:
    """Return the number of an option. ``wanted`` describes it in the error."""
    if not text.isascii() or not text.isdigit() or len(text) > _MAX_DIGITS:
        raise invalid_argument(f"option {name!r}", f"{text[:40]!r} is not {wanted}.")
    return int(text)


def _is_of_storage(name: str) -> bool:
    return name.startswith((*_STORAGE_KEYS, *_STORAGE_VARIABLES))
