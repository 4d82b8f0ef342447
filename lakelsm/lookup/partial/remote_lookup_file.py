"""Lookup files beside data files (`.lookup`), which Java makes in compactions: which one serves, and its store.

Facts: docs/format.md 20.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from lakelsm.errors import CorruptStoreError
from lakelsm.lookup.store.block_cache import BlockCache
from lakelsm.lookup.store.lookup_store import StoreLayout
from lakelsm.lookup.store.persisted_values import PersistedValues, ValueProcessor
from lakelsm.lookup.store.sort_reader import SortFileReader
from lakelsm.lookup.store.sort_store import SortStore
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import same_layout

_SUFFIX = ".lookup"  # Persisted: do not change
#: The version of what rows are serialized by. Persisted: do not change
SERIALIZER_VERSION = "v1"


@dataclass(frozen=True)
class RemoteLookupFile:
    """A lookup file in the directory of its data file, known by its ``name``."""

    name: str
    _: KW_ONLY
    bytes: int
    processor: ValueProcessor

    @classmethod
    def among(cls, extra_files: Sequence[str]) -> RemoteLookupFile | None:
        """The lookup file among a data file's extra files, if there is one that lakelsm reads."""
        name = next((name for name in extra_files if name.endswith(_SUFFIX)), "")
        *_, size, processor, version = ["", "", "", *name.removesuffix(_SUFFIX).split(".")]
        known = {member.value: member for member in ValueProcessor}
        if version != SERIALIZER_VERSION or processor not in known or not (size.isascii() and size.isdecimal()):
            return None
        return cls(name, bytes=int(size), processor=known[processor])

    def serves(self, layout: StoreLayout, written: TableSchema, schema: TableSchema) -> bool:
        """Whether it can answer lookups of a layout in place of its data file, of schema ``written``.

        It has rows of the table's ``schema`` when it was made, and does not say which one that was: so the columns must
        be those that the data file was written with. Floats are no keys of it: Java tells their zeros and NaNs apart.
        """
        values = PersistedValues(self.processor, schema.fields)
        return (
            {field.name for field in layout.values} <= {*values.columns}
            and bool(layout.values)
            and [field.name for field in layout.keys] == [*schema.trimmed_primary_keys]
            and not any(field.type.root in ("FLOAT", "DOUBLE") for field in layout.keys)
            and written.trimmed_primary_keys == schema.trimmed_primary_keys
            and len(written.fields) == len(schema.fields)
            and all(
                (one.id, one.name) == (other.id, other.name) and same_layout(one.type, other.type)
                for one, other in zip(written.fields, schema.fields)
            )
        )

    def store(
        self, path: Path, layout: StoreLayout, schema: TableSchema, *, row_count: int, cache: BlockCache
    ) -> SortStore:
        """The store of a copy on this machine, for a layout that it `serves`. All of it is read and checked first.

        Raises CorruptStoreError for a file that is damaged, or has not all ``row_count`` rows of its data file.
        """
        reader = SortFileReader(path, cache)
        try:
            if reader.disk_bytes != self.bytes:
                raise CorruptStoreError(f"{path}: the lookup file has {reader.disk_bytes} bytes instead of {self.bytes}")
            reader.verify(row_count, _ERROR_RATE)
            return SortStore(reader, layout, PersistedValues(self.processor, schema.fields))
        except BaseException:
            reader.close()
            raise


#: How often the bloom filter, made when the file is opened, lets a key through that the file lacks.
_ERROR_RATE = 0.05
