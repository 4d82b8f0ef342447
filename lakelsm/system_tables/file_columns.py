"""Columns of system tables with many files: paths, keys and statistics. Values are texts as Java prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.data_file.column_evolution import evolve_array
from lakelsm.format.manifest.manifest_file import EntryBatch
from lakelsm.format.partition_path import value_text
from lakelsm.format.row.binary_row import EMPTY_ROW, decode_rows
from lakelsm.schema.table_schema import TableSchema, column_mapping
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import BINARY_ROOTS, INTEGER_ROOTS, STRING_ROOTS, AtomicType, DataType

#: Files that are formatted at a time: decoded values need more memory than their texts.
_MAX_FILES = 16_384


@dataclass(frozen=True)
class FileBatch:
    """Files of one batch of entries: their `FILE_TABLE`, and the partition code and the bucket of each file."""

    batch: EntryBatch
    table: pa.RecordBatch
    partition_codes: npt.NDArray[np.int64]
    buckets: npt.NDArray[np.int64]

    @staticmethod
    def of(live: Iterable[tuple[EntryBatch, npt.NDArray[np.int64]]]) -> Iterator[FileBatch]:
        """Yield the files of entries, at most 16,384 at a time."""
        for batch, rows in live:
            for start in range(0, len(rows), _MAX_FILES):
                part = rows[start : start + _MAX_FILES]
                yield FileBatch(batch, batch.file_table(part), batch.partition_codes[part], batch.buckets[part])

    def partitions(self, store: TableStore) -> pa.Array:
        """Return the partition of each file, as Paimon casts a row to a text."""
        return partition_rows(self.batch.partitions, store.partition_types).take(pa.array(self.partition_codes))

    def paths(self, store: TableStore) -> pa.Array:
        """Return the path of each file."""
        buckets, inverse = np.unique(np.stack([self.partition_codes, self.buckets]), axis=1, return_inverse=True)
        texts = {code: store.partition_text(self.batch.partitions[code]) for code in set(buckets[0].tolist())}
        directories = [store.paths.bucket_dir(texts[code], bucket) for code, bucket in zip(*buckets.tolist())]
        begin = pa.array(directories, pa.large_string()).take(pa.array(inverse.reshape(-1)))
        slash = pa.scalar("/", pa.large_string())
        inside = pc.binary_join_element_wise(begin, self.table["_FILE_NAME"], slash)
        return pc.coalesce(self.table["_EXTERNAL_PATH"], inside)

    def formats(self) -> pa.Array:
        """Return the format of each file: the extension of its name."""
        return pc.replace_substring_regex(self.table["_FILE_NAME"], r"^.*\.", "")

    def keys(self, store: TableStore) -> tuple[pa.Array, pa.Array]:
        """Return the smallest and the largest key of each file, as Java prints an array."""
        ids = self.table["_SCHEMA_ID"].to_numpy()
        schemas = store.schemas_of(ids.tolist())

        def texts(group: pa.RecordBatch) -> list[pa.Array]:
            schema = schemas[group["_SCHEMA_ID"][0].as_py()]
            types = [schema.field(name).type for name in schema.trimmed_primary_keys]
            ends = (decode_rows(group[name], types) for name in ("_MIN_KEY", "_MAX_KEY"))
            return [joined([object_texts(*pair) for pair in zip(end, types)], len(group), "[]") for end in ends]

        low, high = _by_group(self.table, ids, texts)
        return low, high

    def statistics(self, store: TableStore) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Return the NULL counts, minima and maxima of each file by column, as Java prints a map sorted by key."""
        ids = self.table["_SCHEMA_ID"].to_numpy()
        schemas = store.schemas_of(ids.tolist())
        names = self.table["_VALUE_STATS_COLS"].cast(pa.list_(pa.string()))
        layouts = pc.binary_join(names, "\0").dictionary_encode(null_encoding="encode")
        codes = ids * (len(layouts.dictionary) + 1) + layouts.indices.to_numpy()

        def texts(group: pa.RecordBatch) -> list[pa.Array]:
            return _statistics(group, schemas[group["_SCHEMA_ID"][0].as_py()], store.schema)

        nulls, low, high = _by_group(self.table, codes, texts)
        return nulls, low, high


def _by_group(
    table: pa.RecordBatch, codes: npt.NDArray[np.int64], make: Callable[[pa.RecordBatch], list[pa.Array]]
) -> list[pa.Array]:
    """Apply ``make`` to the rows of each code, and return its columns in the order of the table."""
    order = np.argsort(codes, kind="stable")
    starts = np.unique(codes[order], return_index=True)[1]
    made = [make(table.take(pa.array(rows))) for rows in np.split(order, starts[1:])]
    back = pa.array(np.argsort(order))
    return [pa.concat_arrays(parts).take(back) for parts in zip(*made)]


def _statistics(group: pa.RecordBatch, file_schema: TableSchema, schema: TableSchema) -> list[pa.Array]:
    """Return NULL counts, minima and maxima as texts, for files of one schema with statistics of the same columns."""
    columns = group["_VALUE_STATS_COLS"][0].as_py()
    slots = {name: slot for slot, name in enumerate(file_schema.field_names if columns is None else columns)}
    types = [file_schema.field(name).type for name in slots]
    lows, highs = (decode_rows(group[name], types) for name in ("_MIN_VALUES", "_MAX_VALUES"))
    unknown = pa.nulls(len(group), pa.large_string())
    texts: dict[str, tuple[pa.Array, pa.Array, pa.Array]] = {}
    for column, source in column_mapping(file_schema, schema):
        slot = None if source is None else slots.get(source.name)
        if source is None:
            texts[column.name] = group["_ROW_COUNT"].cast(pa.large_string()), unknown, unknown
        elif slot is None:
            texts[column.name] = unknown, unknown, unknown
        else:
            bounds = (_bounds(values[slot], source.type, column.type) for values in (lows, highs))
            low, high = bounds
            texts[column.name] = _item(group["_NULL_COUNTS"], slot).cast(pa.large_string()), low, high
    names = sorted(texts, key=lambda name: name.encode("utf-16-be"))  # Java sorts texts by UTF-16.
    shown = [joined([texts[name][at] for name in names], len(group), "{}", names) for at in range(3)]
    if columns is not None or file_schema.id != schema.id:
        return shown
    nothing = pc.less_equal(pc.binary_length(group["_MIN_VALUES"]), len(EMPTY_ROW))
    return [pc.if_else(nothing, "{}", text) for text in shown]


def _bounds(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    if not (isinstance(source, AtomicType) and isinstance(target, AtomicType)):
        return pa.nulls(len(values), pa.large_string())
    return object_texts(evolve_array(values, source, target), target)


def _item(lists: pa.Array, index: int) -> pa.Array:
    """Return the item at an index of each list; NULL if the list is shorter."""
    long_enough = pc.greater(pc.list_value_length(lists), index)
    fitting = pc.if_else(pc.fill_null(long_enough, False), lists, pa.scalar([None] * (index + 1), lists.type))
    return pc.list_element(fitting, index)


_NULL = "null"


def object_texts(column: pa.Array, data_type: DataType) -> pa.LargeStringArray:
    """Return the values as Java's toString prints them; NULL stays.

    Java prints an address for bytes; here they are hexadecimal digits. Nested values have no bounds and are NULL.
    """
    return _texts(column, data_type, legacy=True)


def cast_texts(column: pa.Array, data_type: DataType) -> pa.LargeStringArray:
    """Return the values as Paimon casts them to texts; NULL stays."""
    return _texts(column, data_type, legacy=False)


def joined(
    texts: Sequence[pa.LargeStringArray], count: int, around: str, names: Sequence[str] = ()
) -> pa.LargeStringArray:
    """Join the texts of each row with ', ', between the two characters ``around``. NULL becomes 'null'.

    With ``names``, each text follows its name and '='.
    """
    begin, end = (pa.array([character] * count, pa.large_string()) for character in around)
    if not texts:
        return pc.binary_join_element_wise(begin, end, pa.scalar("", pa.large_string()))
    heads = [f"{name}=" for name in names] or [""] * len(texts)
    parts = [
        pc.binary_join_element_wise(pa.scalar(head, pa.large_string()), text, pa.scalar("", pa.large_string()))
        for head, text in zip(heads, (pc.fill_null(text, _NULL) for text in texts))
    ]
    inner = pc.binary_join_element_wise(*parts, pa.scalar(", ", pa.large_string()))
    return pc.binary_join_element_wise(begin, inner, end, pa.scalar("", pa.large_string()))


def _texts(column: pa.Array, data_type: DataType, legacy: bool) -> pa.LargeStringArray:
    if not isinstance(data_type, AtomicType) or column.null_count == len(column):
        return pa.nulls(len(column), pa.large_string())
    root = data_type.root
    if root in STRING_ROOTS or root in INTEGER_ROOTS or root == "BOOLEAN":
        return column.cast(pa.large_string())
    if legacy and root in ("DATE", "TIME"):
        return column.cast(pa.int32()).cast(pa.large_string())
    # Each distinct value is formatted once, because Java's formatting of digits is Python code here.
    if root in ("FLOAT", "DOUBLE"):
        bits = column.view(pa.int32() if root == "FLOAT" else pa.int64()).dictionary_encode()
        distinct, indexes = bits.dictionary.view(column.type), bits.indices
    else:
        coded = column.dictionary_encode()
        distinct, indexes = coded.dictionary, coded.indices
    if legacy and root in BINARY_ROOTS:
        texts = [value.hex() for value in distinct.to_pylist()]
    else:
        texts = [value_text(value, data_type, legacy) for value in distinct]
    return pa.array(texts, pa.large_string()).take(indexes)


def partition_rows(partitions: Sequence[bytes], types: Sequence[DataType]) -> pa.LargeStringArray:
    """Return stored partitions as Paimon casts a row to a text: '{2025-12-31, 12}', or '{}' without partition columns."""
    columns = decode_rows(list(partitions), types) if types else []
    return joined([cast_texts(*pair) for pair in zip(columns, types)], len(partitions), "{}")
