"""The options that name a table: for reads and for writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field

from lakelsm.arguments import checked_branch, invalid_argument
from lakelsm.errors import InvalidInputError
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
            raise InvalidInputError("option 'path': the table is missing. Pass its directory or URI to load() or save().")
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
            from lakelsm.catalog import Catalog

            table = Catalog(self.warehouse, storage_options=self.storage).table(self.location)
        return table if self.branch is None else table.branches.open(self.branch)


def checked_options(given: Mapping[str, str], names: Collection[str], call: str) -> dict[str, str]:
    """Return options by name in lower case. Raises InvalidInputError for one that a ``call`` does not have."""
    options = {str(name).lower(): str(value) for name, value in given.items()}
    unknown = sorted(name for name in options if name not in names and not _is_of_storage(name))
    if unknown:
        raise InvalidInputError(
            f"option {unknown[0]!r}: a {call} of format('lakelsm') has no such option. Options: {', '.join(names)}, and "
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
