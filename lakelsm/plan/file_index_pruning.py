"""Excludes data files without matching rows by their file indexes: bloom filters and bitmaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from pyroaring import BitMap

from lakelsm.format.data_file.file_index_location import FileIndexLocation
from lakelsm.format.file_names import refuse_external_path
from lakelsm.format.index.file_index.fast_hash import Hashes, fast_hashes
from lakelsm.format.index.file_index.file_index import FileIndex, Rows
from lakelsm.format.manifest import ManifestEntry
from lakelsm.options.file_index_options import BITMAP, BLOOM_FILTER
from lakelsm.predicate.predicate import And, Compare, Constant, In, IsNotNull, IsNull, Or, Predicate, restrict
from lakelsm.schema.table_schema import TableSchema, column_mapping
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField, python_arrow, same_layout, to_arrow
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP

#: Threads that read index files, and the maximum number that one read opens: reading more costs longer than they save.
_THREADS = 8
_MAX_FILES = 10_000
#: Types whose index does not distinguish all values: it can include rows by a value, but not exclude them.
_ROUNDED = ("FLOAT", "DOUBLE")

Leaf = Compare | In | IsNull | IsNotNull


class FileIndexPruning:
    """Evaluates a predicate on the file indexes of data files.

    Only columns with an index in the table's options are used. They are matched by field id; an index of a column whose
    type has changed since is not used.
    """

    def __init__(self, store: TableStore, predicate: Predicate) -> None:
        self._store = store
        self._predicate = predicate
        self._by_keys = restrict(predicate, store.schema.primary_keys)
        self._values: dict[Leaf, tuple[pa.Array, Hashes | None]] = dict(self._answerable(predicate))

    def keep(
        self, entries: Sequence[ManifestEntry], shown: Sequence[int], by_keys: Sequence[bool], by_values: Sequence[bool]
    ) -> tuple[list[bool], list[bool]]:
        """Return two lists with False for files in which no row makes the predicate TRUE.

        The first uses key columns alone, the second all columns. Only the entries with the indexes ``shown`` are
        checked, if statistics (``by_keys``, ``by_values``) do not exclude them yet. Raises CorruptTableError if an
        index is missing or damaged.
        """
        keys, values = list(by_keys), list(by_values)
        if not self._values or not self._store.options.file_index_read_enabled:
            return keys, values
        locations = self._locations(entries, [index for index in shown if keys[index] and values[index]])
        schemas = self._store.schemas_of({entries[index].file.schema_id for index in locations})
        columns = {schema_id: self._columns(schema) for schema_id, schema in schemas.items()}
        filesystem = self._store.file_io.filesystem()

        def evaluate(index: int, location: FileIndexLocation) -> tuple[bool, bool]:
            file_index, file_columns = location.read(filesystem), columns[entries[index].file.schema_id]
            if _any(self._rows(self._predicate, file_index, file_columns)):
                return True, True
            return _any(self._rows(self._by_keys, file_index, file_columns)), False

        with ThreadPoolExecutor(_THREADS) as pool:
            for index, (key, value) in zip(locations, pool.map(evaluate, locations.keys(), locations.values())):
                keys[index], values[index] = key, value
        return keys, values

    def _locations(self, entries: Sequence[ManifestEntry], wanted: Sequence[int]) -> dict[int, FileIndexLocation]:
        """Return the locations of the indexes of the wanted entries, for entries that have some."""
        locations: dict[int, FileIndexLocation] = {}
        directories: dict[tuple[bytes, int], str] = {}
        files_to_open = 0
        for index in wanted:
            entry = entries[index]
            bucket = (entry.partition, entry.bucket)
            if bucket not in directories:
                directories[bucket] = self._store.paths.bucket_dir(
                    self._store.partition_text(entry.partition), entry.bucket
                )
            refuse_external_path(entry.file.external_path, entry.file.file_name)
            location = FileIndexLocation.of(entry.file, directories[bucket])
            if location is None or (location.path is not None and files_to_open == _MAX_FILES):
                continue
            if location.path is not None:
                self._store.file_io.check_file(location.path)
                files_to_open += 1
            locations[index] = location
        return locations

    def _answerable(self, predicate: Predicate) -> Iterator[tuple[Leaf, tuple[pa.Array, Hashes | None]]]:
        """Yield the parts of a predicate that an index can answer, with their values and the hashes of these."""
        if isinstance(predicate, And | Or):
            for child in predicate.children:
                yield from self._answerable(child)
        elif isinstance(predicate, Compare | In | IsNull | IsNotNull):
            if isinstance(predicate, Compare) and predicate.op not in ("=", "!="):
                return
            kinds = {index.kind for index in self._store.options.file_indexes if index.column == predicate.column}
            if BITMAP in kinds or (BLOOM_FILTER in kinds and _is_equality(predicate)):
                values = _values(predicate, self._store.schema.field(predicate.column))
                yield predicate, (values, fast_hashes(values) if BLOOM_FILTER in kinds else None)

    def _columns(self, file_schema: TableSchema) -> Mapping[str, DataField]:
        """Return the file's columns by their names in the table, without those whose type has changed."""
        pairs = column_mapping(file_schema, self._store.schema)
        return {
            column.name: source
            for column, source in pairs
            if source is not None and same_layout(source.type, column.type)
        }

    def _rows(self, predicate: Predicate, index: FileIndex, columns: Mapping[str, DataField]) -> Rows:
        """Return the rows of a file for which the predicate may be TRUE."""
        if isinstance(predicate, And):
            every = [self._rows(child, index, columns) for child in predicate.children]
            known = [rows for rows in every if rows is not None]
            return BitMap.intersection(*known) if known else None
        if isinstance(predicate, Or):
            either = [self._rows(child, index, columns) for child in predicate.children]
            known = [rows for rows in either if rows is not None]
            return BitMap.union(*known) if known and len(known) == len(either) else None
        if isinstance(predicate, Constant):
            return None if predicate.value else BitMap()
        if not isinstance(predicate, Compare | In | IsNull | IsNotNull) or predicate not in self._values:
            return None
        column = columns.get(predicate.column)
        return None if column is None else self._leaf_rows(predicate, index, column)

    def _leaf_rows(self, leaf: Leaf, index: FileIndex, column: DataField) -> Rows:
        if isinstance(leaf, IsNull | IsNotNull):
            return index.null_rows(column, isinstance(leaf, IsNull))
        values, hashes = self._values[leaf]
        if _is_equality(leaf):
            return index.rows_with(column, values, hashes)
        return index.rows_without(column, values) if _is_exact(column) else None


def _is_equality(leaf: Leaf) -> bool:
    return leaf.op == "=" if isinstance(leaf, Compare) else isinstance(leaf, In) and not leaf.negated


def _values(leaf: Leaf, column: DataField) -> pa.Array:
    """Return the values of a condition in the column's Arrow type; both zeros for a zero of a float."""
    if isinstance(leaf, IsNull | IsNotNull):
        return pa.array([], python_arrow(column.type))
    values = [leaf.value] if isinstance(leaf, Compare) else list(leaf.values)
    if column.type.root in _ROUNDED and 0.0 in values:
        values += [0.0, -0.0]
    return pa.array(values, python_arrow(column.type))


def _is_exact(column: DataField) -> bool:
    """Return whether rows with equal values in an index also have equal values in the column."""
    return column.type.root not in _ROUNDED and to_arrow(column.type) != NANO_TIMESTAMP


def _any(rows: Rows) -> bool:
    return rows is None or bool(rows)
