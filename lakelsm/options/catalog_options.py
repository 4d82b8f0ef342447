"""Options of a catalog: what holds for its tables where they set nothing themselves."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from lakelsm.errors import InvalidInputError
from lakelsm.options.table_options import OPTIONS

#: The options of tables that a catalog can have.
CATALOG_KEYS: tuple[str, ...] = ("lakelsm.time-zone",)


@dataclass(frozen=True, kw_only=True)
class CatalogOptions:
    """The options of a catalog, parsed; None: not set."""

    lakelsm_time_zone: tzinfo | None = None

    @staticmethod
    def parse(raw: Mapping[str, str]) -> CatalogOptions:
        """The typed options. Raises InvalidInputError for an unknown key and for a value that cannot be read."""
        values: dict[str, Any] = {}
        for key, text in raw.items():
            if key not in CATALOG_KEYS:
                near = difflib.get_close_matches(key, CATALOG_KEYS, n=1)
                hint = f"did you mean '{near[0]}'?" if near else f"a catalog takes {', '.join(CATALOG_KEYS)}."
                raise InvalidInputError(f"unknown catalog option '{key}': {hint}")
            values[key.replace(".", "_").replace("-", "_")] = OPTIONS[key].parse(text)
        return CatalogOptions(**values)
