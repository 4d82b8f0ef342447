"""Which rows and columns of a table a full cache has, under one schema of the table."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from hashlib import blake2b

import pyarrow as pa

from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.full.generation import CacheLayout

#: Options of how lookups go, which change no row: of others it is not asked whether they do.
_NO_ROWS = ("lookup.", "cache-page-size", "continuous.", "scan.partitions")


@dataclass(frozen=True)
class CacheContents:
    """The contents of a cache: ``layout`` is that of its rows, of which index ``asked`` is the one of a lookup's key.

    ``unique``: each key has one row. ``found`` are the columns that lookups give, ``read`` those that changes must have.
    ``mark`` is a text that a cache of other rows, columns or types has not, nor one under options that may show others.
    """

    layout: CacheLayout
    asked: int
    _: KW_ONLY
    unique: bool
    found: pa.Schema
    read: tuple[str, ...]
    mark: str

    @staticmethod
    def of(spec: LookupSpec) -> CacheContents:
        """The contents for a lookup."""
        schema = spec.store.schema
        keys = [spec.key] if spec.by_primary_key else [schema.primary_keys, spec.key]
        stored = tuple(dict.fromkeys((*schema.primary_keys, *spec.key, *spec.columns)))
        layout = CacheLayout(
            tuple(map(schema.field, stored)), tuple(tuple(map(schema.field, key)) for key in keys)
        )
        options = sorted(item for item in schema.options.items() if not item[0].startswith(_NO_ROWS))
        described = repr((layout, spec.predicate, sorted(spec.buckets) if spec.buckets is not None else None, options))
        return CacheContents(
            layout,
            len(keys) - 1,
            unique=spec.by_primary_key,
            found=pa.schema([layout.schema.field(name) for name in spec.columns]),
            read=tuple(dict.fromkeys((*stored, *sorted(spec.read_columns)))),
            mark=blake2b(described.encode(), digest_size=16).hexdigest(),
        )

    @property
    def no_keys(self) -> pa.Table:
        """Keys, but none."""
        schema = self.layout.schema
        return pa.schema([schema.field(field.name) for field in self.layout.keys[self.asked]]).empty_table()
