"""Options of a catalog: the defaults of its tables for some table options."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from lakelsm.errors import InvalidInputError
from lakelsm.options.table_options import OPTIONS

#: The table options that a catalog accepts.
CATALOG_KEYS: tuple[str, ...] = ("lakelsm.time-zone",)


@dataclass(frozen=True, kw_only=True)
class CatalogOptions:
    """The options of a catalog, parsed; None if not set."""

    lakelsm_time_zone: tzinfo | None = None

    @staticmethod
    def parse(raw: Mapping[str, str]) -> CatalogOptions:
        """Parse the options. Raises InvalidInputError for an unknown key and for an invalid value."""
        values: dict[str, Any] = {}
        for key, text in raw.items():
            if key not in CATALOG_KEYS:
                near = difflib.get_close_matches(key, CATALOG_KEYS, n=1)
                hint = f"Use {near[0]!r}." if near else f"A catalog accepts {', '.join(CATALOG_KEYS)}."
                raise InvalidInputError(f"option '{key}' is not an option of catalogs. {hint}")
            values[key.replace(".", "_").replace("-", "_")] = OPTIONS[key].parse(text)
        return CatalogOptions(**values)
