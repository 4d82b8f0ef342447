"""The plainest LookupTable: it reads the whole table and looks at each row. It is the truth that caches are held to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm import Table
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.found_rows import FoundRows
from lakelsm.lookup.lookup_spec import LookupSpec
from lakelsm.lookup.lookup_table import Refreshed
from lakelsm.types import to_arrow


class ReadLookup:
    """Answers from `Table.to_arrow` as of the snapshot of its last refresh; conditions and buckets are not looked at."""

    def __init__(self, spec: LookupSpec, directory: CacheDirectory) -> None:
        self.spec = spec
        self.directory = directory
        self.refreshes = 0
        self.closed = False
        self._load()

    @property
    def snapshot(self) -> Snapshot | None:
        return self._snapshot

    def find(self, keys: pa.Table) -> FoundRows:
        probes: list[int] = []
        places: list[int] = []
        for at, key in enumerate(zip(*(column.to_pylist() for column in keys.columns))):
            found = self._places.get(key, [])
            probes += [at] * len(found)
            places += found
        return FoundRows(np.array(probes, np.int64), self._rows.take(pa.array(places, pa.int64())))

    def find_one(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return [tuple(self._rows.slice(at, 1).to_pylist()[0].values()) for at in self._places.get(key, [])]

    def refresh(self) -> Refreshed:
        self.refreshes += 1
        self._load()
        return Refreshed(self._snapshot, changed=None)

    def close(self) -> None:
        self.closed = True

    def _load(self) -> None:
        store = self.spec.store
        self._snapshot = store.snapshots.latest()
        shown = Table.for_path(store.paths.root).to_arrow()
        kinds = {field.name: to_arrow(field.type) for field in store.schema.fields}
        rows = pa.table({name: cast_column(shown.column(name), kind) for name, kind in kinds.items()})
        self._rows = rows.select(list(self.spec.columns))
        self._places: dict[tuple[Any, ...], list[int]] = {}
        for at, key in enumerate(zip(*(rows.column(name).to_pylist() for name in self.spec.key))):
            self._places.setdefault(key, []).append(at)
