"""Building lookup stores from data files: their kind, their columns, and the task that writes one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field

import numpy as np
import pyarrow as pa

from lakelsm.cancellation import raise_if_cancelled
from lakelsm.errors import CorruptStoreError
from lakelsm.failures import warn_and_log
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.partial.remote_lookup_file import RemoteLookupFile
from lakelsm.lookup.store.arrow_store import ArrowStoreFormat
from lakelsm.lookup.store.hash_store import HashStoreFormat
from lakelsm.lookup.store.lookup_store import BlockCache, StoreFormat, StoreLayout
from lakelsm.lookup.store.sort_block import BlockForm
from lakelsm.lookup.store.sort_store import SortStoreFormat
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.options import StoreKind, TableOptions
from lakelsm.schema.system_columns import POSITION, SEQUENCE_NUMBER, SYSTEM_FIELDS
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import DataField, parse_type

_LOG = logging.getLogger(__name__)

#: The row index in the data file, by which deletion vectors mask rows.
_POSITION_FIELD = DataField(SYSTEM_FIELDS[-1].id - 1, POSITION, parse_type("BIGINT NOT NULL"))
#: Bytes of rows that are decoded at a time.
_BATCH_BYTES = 4 << 20
#: The divisor of `lookup.cache-max-memory-size` that gives the memory of decoded blocks.
_BLOCKS_SHARE = 2


def store_format(options: TableOptions) -> StoreFormat:
    """Return the format of `lookup.local-file-type`. The stores that it opens share one cache of decoded blocks."""
    cache = BlockCache(options.lookup_cache_max_memory_size // _BLOCKS_SHARE)
    form = BlockForm.of(options)
    formats: dict[StoreKind, StoreFormat] = {
        StoreKind.ARROW: ArrowStoreFormat(),
        StoreKind.SORT: SortStoreFormat(form, cache),
        StoreKind.HASH: HashStoreFormat(form, cache, options.lookup_hash_load_factor),
    }
    return formats[options.lookup_local_file_type]


@dataclass(frozen=True)
class StoredColumns:
    """The columns of a lookup's stores: ``keys`` (the trimmed primary key), then ``values`` with system columns.

    ``merge`` merges versions of a key; the values contain the columns that it needs.
    """

    keys: tuple[DataField, ...]
    values: tuple[DataField, ...]
    _: KW_ONLY
    merge: MergeSpec

    @staticmethod
    def of(spec: LookupSpec, *, merged: bool, positions: bool) -> StoredColumns:
        """Return what a lookup needs. ``merged``: rows of several files are merged; ``positions``: vectors mask rows."""
        schema = spec.store.schema
        wanted = set(spec.read_columns)
        merge = MergeSpec.of(schema, spec.store.options).of_columns(wanted)
        wanted.update(merge.read_columns)
        values = [schema.field(name) for name in schema.field_names if name in wanted - {*schema.primary_keys}]
        number, kind = SYSTEM_FIELDS
        system = [*([number] if merged else []), kind, *([_POSITION_FIELD] if positions else [])]
        keys = tuple(map(schema.field, schema.trimmed_primary_keys))
        return StoredColumns(keys, (*values, *system), merge=merge)

    @property
    def merged(self) -> bool:
        """Whether the stores have the columns that a merge of rows of several files needs."""
        return SEQUENCE_NUMBER in self.value_names

    @property
    def positions(self) -> bool:
        """Whether the stores have the row indexes of rows."""
        return POSITION in self.value_names

    def layout(self, file: RunFile) -> StoreLayout:
        """Return the layout of a data file's store. It is different for different files with the same path."""
        known = None if file.expected is None else file.expected.footer_checksum
        ids = tuple(field.id for field in (*self.keys, *self.values))
        rows = (file.path, file.file_size, file.row_count, file.schema_id, known, ids)
        return StoreLayout(self.keys, self.values, rows_of=repr(rows))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, in order."""
        return (*(field.name for field in self.keys), *self.value_names)

    @property
    def value_names(self) -> tuple[str, ...]:
        """The names of all columns except the keys."""
        return tuple(field.name for field in self.values)


@dataclass(frozen=True)
class StoreBuild:
    """The task that builds the store of a data file in a directory, under its name in ``names``.

    The store has all rows of the file, also masked ones, because snapshots mask different rows. For a data file in
    ``remote`` the lookup file beside it is copied instead, if it exists.
    """

    spec: LookupSpec
    stored: StoredColumns
    _: KW_ONLY
    format: StoreFormat
    directory: CacheDirectory
    names: Mapping[RunFile, str]
    schemas: Mapping[int, TableSchema]
    memory_bytes: int
    remote: Mapping[RunFile, RemoteLookupFile] = field(default_factory=dict)

    def __call__(self, file: RunFile) -> Iterator[pa.RecordBatch]:
        """Build the store; yield nothing."""
        layout = self.stored.layout(file)
        if file not in self.remote or not self._copied(file, self.remote[file]):
            self.directory.publish(
                self.names[file], lambda path: self.format.write(path, layout, self._rows(file))
            )
        yield from ()

    def _copied(self, file: RunFile, remote: RemoteLookupFile) -> bool:
        """Copy a lookup file. Return False if it does not exist or, with a warning, cannot be read."""
        file_io = self.spec.store.file_io
        source = file.path.removesuffix(file.name) + remote.name
        file_io.check_file(source)
        if not file_io.exists(source):
            return False
        filesystem = file_io.filesystem()
        try:
            self.directory.publish(self.names[file], lambda path: remote.copy(filesystem, source, path))
        except CorruptStoreError as error:
            warn_of_rebuild(self.spec, file, error)
            return False
        return True

    def _rows(self, file: RunFile) -> Iterator[pa.Table]:
        store = self.spec.store
        names = self.stored.names
        reader = RunReader(
            store.file_io, store.schema, schemas=self.schemas, columns=names, memory_bytes=self.memory_bytes
        )
        allowance = min(self.memory_bytes // 8, _BATCH_BYTES)
        for start, rows in reader.open_file(file).batches(lambda: allowance):
            raise_if_cancelled()
            if self.stored.positions:
                rows = rows.append_column(POSITION, pa.array(np.arange(start, start + len(rows))))
            yield rows.select(list(names))


def warn_of_rebuild(spec: LookupSpec, file: RunFile, error: CorruptStoreError) -> None:
    """Warn that the store of a data file is built again because of ``error``."""
    text = f"Table {spec.store.name}: the lookup file of data file {file.path} is built again: {error}"
    warn_and_log(_LOG, text, RuntimeWarning)
