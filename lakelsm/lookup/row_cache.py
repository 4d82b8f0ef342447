"""The rows of single lookups that were asked for last, as they were handed out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm.lookup.store.key_index import hashes_of
from lakelsm.types import DataField, to_arrow

Key = tuple[Any, ...]
Rows = list[tuple[Any, ...]]


class RowCache:
    """Rows by key, up to ``most_rows`` of them (a key without a row counts for one); the one not asked for longest goes.

    Several threads may use it. What is found while a refresh goes on is put with the ``era`` in which the search began,
    and forgotten where that has ended: it may be of the state before.
    """

    def __init__(self, fields: Sequence[DataField], most_rows: int) -> None:
        self._fields = fields
        self._most = most_rows
        self._rows: OrderedDict[Key, Rows] = OrderedDict()
        self._count = 0
        self._lock = Lock()
        #: Changes with each refresh.
        self.era = 0

    def get(self, key: Key) -> Rows | None:
        """The rows of a key, None where they are not kept."""
        with self._lock:
            found = self._rows.get(key)
            if found is not None:
                self._rows.move_to_end(key)
            return found

    def put(self, key: Key, rows: Rows, era: int) -> None:
        """Keep the rows of a key that were looked for in an era."""
        size = max(len(rows), 1)
        with self._lock:
            if era != self.era or key in self._rows or size > self._most:
                return
            self._rows[key] = rows
            self._count += size
            while self._count > self._most:
                self._count -= max(len(self._rows.popitem(last=False)[1]), 1)

    def drop(self, changed: pa.Table | None) -> None:
        """Forget the rows of some keys, or of all: None, or keys that lack columns of these."""
        with self._lock:
            self.era += 1
            if not self._rows:
                return
            if changed is None or not {field.name for field in self._fields} <= set(changed.column_names):
                self._rows.clear()
                self._count = 0
            elif len(changed):
                for key in self._among(changed):
                    self._count -= max(len(self._rows.pop(key)), 1)

    def _among(self, changed: pa.Table) -> list[Key]:
        """The kept keys that may be among others: those with an equal hash."""
        kept = list(self._rows)
        columns = [pa.array(values, to_arrow(field.type)) for values, field in zip(zip(*kept), self._fields)]
        own = pa.table(columns, names=[field.name for field in self._fields])
        found = np.isin(hashes_of(own, self._fields), hashes_of(changed, self._fields))
        return [kept[at] for at in np.flatnonzero(found).tolist()]
