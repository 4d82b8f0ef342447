"""A lookup cache that reads the table: the expected answers of all other caches."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm.local.arrow_scan import ArrowScan
from lakelsm.local.output_rows import output_rows, output_schema
from lakelsm.lookup.cache import FoundRows, LookupSpec, Refreshed
from lakelsm.runner.local_runner import LocalRunner


class ScannedCache:
    """Implements `Cache`. ``changed`` is the result of the next refreshes, ``failure`` the error that they raise."""

    kind = "full"
    disk_bytes = None

    def __init__(self, spec: LookupSpec) -> None:
        self.spec = spec
        self.changed: pa.Table | None = None
        self.failure: BaseException | None = None
        self.refreshes = self.lookups = 0
        self.closed = False
        self._read()

    def _read(self) -> None:
        spec, names = self.spec, tuple(dict.fromkeys((*self.spec.key, *self.spec.columns)))
        self.snapshot = spec.store.snapshots.latest()
        scan = ArrowScan.of(spec.store, self.snapshot, names, spec.predicate)
        batches = list(scan.stored_batches(LocalRunner()))
        fields = [spec.store.schema.field(name) for name in names]
        self._rows = pa.Table.from_batches(batches) if batches else _empty(spec, names)
        self.shown = output_rows(self._rows, output_schema(fields)).select(list(spec.columns)).to_pylist()
        self.rows = len(self._rows)
        self.indexes: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for index, key in enumerate(zip(*(self._rows.column(name).to_pylist() for name in spec.key))):
            self.indexes[key].append(index)

    def find(self, keys: pa.Table) -> FoundRows:
        assert not self.closed and keys.column_names == list(self.spec.key)
        assert keys.schema.types == [self._rows.schema.field(name).type for name in self.spec.key]
        found = [
            (probe, index)
            for probe, key in enumerate(zip(*(column.to_pylist() for column in keys.columns)))
            for index in self.indexes.get(key, ())
        ]
        probes, rows = (np.array([pair[at] for pair in found], np.int64) for at in (0, 1))
        return FoundRows(probes, self._rows.select(list(self.spec.columns)).take(pa.array(rows)))

    def find_key(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        assert not self.closed
        self.lookups += 1
        return [tuple(self.shown[index].values()) for index in self.indexes.get(key, ())]

    def refresh(self) -> Refreshed:
        self.refreshes += 1
        if self.failure is not None:
            raise self.failure
        self._read()
        return Refreshed(self.snapshot, changed=self.changed)

    def close(self) -> None:
        self.closed = True


class Opened:
    """An `Opener` of scanned caches. It keeps the caches, and the shared directories that were requested."""

    def __init__(self, kind: type[ScannedCache] = ScannedCache) -> None:
        self.kind = kind
        self.caches: list[ScannedCache] = []
        self.directories: list[Path | None] = []

    def __call__(self, spec: LookupSpec, shared: Path | None = None) -> ScannedCache:
        self.caches.append(self.kind(spec))
        self.directories.append(shared)
        return self.caches[-1]


def _empty(spec: LookupSpec, names: tuple[str, ...]) -> pa.Table:
    from lakelsm.local.arrow_scan import stored_schema

    return stored_schema(spec.store, names).empty_table()
