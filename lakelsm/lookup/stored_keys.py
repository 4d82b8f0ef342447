"""Keys that a user gives, as caches are asked for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.local.arrow_rows import one_bit_pattern
from lakelsm.local.arrow_values import plain_array
from lakelsm.lookup.lookup_spec import LookupSpec
from lakelsm.types import to_arrow


@dataclass(frozen=True)
class StoredKeys:
    """The ``keys`` among those asked for that a row can have, in stored types; ``places[i]`` is where key i was given."""

    places: npt.NDArray[np.int64]
    keys: pa.Table

    @staticmethod
    def of(columns: Sequence[pa.Array], spec: LookupSpec) -> StoredKeys:
        """Of keys whose columns are those of ``spec.key``, of types all whose values theirs have, but for finer times.

        NULL is no key of a row, nor is a time that is finer than those of its column.
        """
        schema = spec.store.schema
        stored, possible = [], np.ones(len(columns[0]), np.bool_)
        for given, name in zip(map(plain_array, columns), spec.key):
            kind = to_arrow(schema.field(name).type)
            values = cast_column(given, kind)
            possible &= values.is_valid().to_numpy(zero_copy_only=False)
            if pa.types.is_timestamp(given.type) and values.type != given.type:
                same = pc.fill_null(pc.equal(cast_column(values, given.type), given), False)
                possible &= same.to_numpy(zero_copy_only=False)
            stored.append(one_bit_pattern(values, zeros=name in schema.partition_keys))
        keys = pa.table(stored, names=list(spec.key))
        places = np.flatnonzero(possible)
        return StoredKeys(places, keys if len(places) == len(keys) else keys.take(pa.array(places)))
