"""An open cache, and what it holds beside its rows."""

from __future__ import annotations

from dataclasses import dataclass

from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.lookup_table import LookupTable


@dataclass(frozen=True)
class OpenedCache:
    """A cache of a ``kind`` ('full', 'partial' or 'remote') with its files in a ``directory``."""

    kind: str
    table: LookupTable
    directory: CacheDirectory

    def close(self) -> None:
        """Close the cache, and then its directory."""
        try:
            self.table.close()
        finally:
            self.directory.close()
