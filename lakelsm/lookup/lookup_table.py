"""The protocol of what answers lookups. Kinds of caches fulfil it; who asks does not know which one it is."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol

import pyarrow as pa

from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.found_rows import FoundRows


@dataclass(frozen=True)
class Refreshed:
    """What a refresh did: ``changed`` has the keys whose rows may be others now (None: any key's may).

    ``rebuilt`` says why the cache was made anew (None: it was not).
    """

    snapshot: Snapshot | None
    _: KW_ONLY
    changed: pa.Table | None
    rebuilt: str | None = None


class LookupTable(Protocol):
    """Answers lookups of one `LookupSpec` as of one snapshot, until it is refreshed.

    Several threads may look up while one refreshes: each lookup sees one state.
    """

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that answers (None: an empty table)."""

    def find(self, keys: pa.Table) -> FoundRows:
        """The rows that `Table.read` shows, of each key.

        ``keys`` has the columns of ``spec.key`` in the table's stored types (`lakelsm.types.to_arrow`), no NULLs, in any
        order; a key may come twice. Rows have ``spec.columns`` in stored types.
        """

    def find_one(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The rows of one key as Python values as users get them; the key's are as `pa.Array.to_pylist` has them."""

    def refresh(self) -> Refreshed:
        """Go on to the table's newest snapshot."""

    def close(self) -> None:
        """Give memory and disk space back. It answers no more lookups."""
