"""Columns of system tables about many files: paths, keys and statistics, with values as the texts that Java prints."""

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

#: So many files are shown at a time: the values of each need more memory than its text.
_FILES_AT_ONCE = 16_384


@dataclass(frozen=True)
class FileBatch:
    """Some files of one batch of entries: their table (`FILE_TABLE`), and of each its partition's code and bucket."""

    batch: EntryBatch
    table: pa.RecordBatch
    partition_codes: npt.NDArray[np.int64]
    buckets: npt.NDArray[np.int64]

    @staticmethod
    def of(live: Iterable[tuple[EntryBatch, npt.NDArray[np.int64]]]) -> Iterator[FileBatch]:
        """The files of entries, a part at a time."""
        for batch, rows in live:
            for start in range(0, len(rows), _FILES_AT_ONCE):
                part = rows[start : start + _FILES_AT_ONCE]
                yield FileBatch(batch, batch.file_table(part), batch.partition_codes[part], batch.buckets[part])

    def partitions(self, store: TableStore) -> pa.Array:
        """The partition of each, as Paimon casts a row to a text."""
        return partition_rows(self.batch.partitions, store.partition_types).take(pa.array(self.partition_codes))

    def paths(self, store: TableStore) -> pa.Array:
        """Where each lies."""
        places, inverse = np.unique(np.stack([self.partition_codes, self.buckets]), axis=1, return_inverse=True)
        texts = {code: store.partition_text(self.batch.partitions[code]) for code in set(places[0].tolist())}
        directories = [store.paths.bucket_dir(texts[code], bucket) for code, bucket in zip(*places.tolist())]
        begin = pa.array(directories, pa.large_string()).take(pa.array(inverse.reshape(-1)))
        slash = pa.scalar("/", pa.large_string())
        inside = pc.binary_join_element_wise(begin, self.table["_FILE_NAME"], slash)
        return pc.coalesce(self.table["_EXTERNAL_PATH"], inside)

    def formats(self) -> pa.Array:
        """The format of each, which its name ends with."""
        return pc.replace_substring_regex(self.table["_FILE_NAME"], r"^.*\.", "")

    def keys(self, store: TableStore) -> tuple[pa.Array, pa.Array]:
        """The smallest and the greatest key of each, as Java prints an array."""
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
        """Counts of NULLs, least and greatest values of each by column, as Java prints a map in the order of its keys."""
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
    """What is made of the rows of each code, in the order of the table."""
    order = np.argsort(codes, kind="stable")
    starts = np.unique(codes[order], return_index=True)[1]
    made = [make(table.take(pa.array(places))) for places in np.split(order, starts[1:])]
    back = pa.array(np.argsort(order))
    return [pa.concat_arrays(parts).take(back) for parts in zip(*made)]


def _statistics(group: pa.RecordBatch, file_schema: TableSchema, schema: TableSchema) -> list[pa.Array]:
    """Counts of NULLs, least and greatest values as texts, of files of one schema with statistics of the same columns."""
    told = group["_VALUE_STATS_COLS"][0].as_py()
    slots = {name: slot for slot, name in enumerate(file_schema.field_names if told is None else told)}
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
    names = sorted(texts, key=lambda name: name.encode("utf-16-be"))  # Java's order of texts.
    shown = [joined([texts[name][at] for name in names], len(group), "{}", names) for at in range(3)]
    if told is not None or file_schema.id != schema.id:
        return shown
    nothing = pc.less_equal(pc.binary_length(group["_MIN_VALUES"]), len(EMPTY_ROW))
    return [pc.if_else(nothing, "{}", text) for text in shown]


def _bounds(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    if not (isinstance(source, AtomicType) and isinstance(target, AtomicType)):
        return pa.nulls(len(values), pa.large_string())
    return object_texts(evolve_array(values, source, target), target)


def _item(lists: pa.Array, place: int) -> pa.Array:
    """The item at an index of each list; NULL beyond its end."""
    long_enough = pc.greater(pc.list_value_length(lists), place)
    fitting = pc.if_else(pc.fill_null(long_enough, False), lists, pa.scalar([None] * (place + 1), lists.type))
    return pc.list_element(fitting, place)


_NULL = "null"


def object_texts(column: pa.Array, data_type: DataType) -> pa.LargeStringArray:
    """What Java's toString gives of the values; NULL stays.

    Of bytes that is an address, so they are hexadecimal digits here; nested values, which have no bounds, are NULL.
    """
    return _texts(column, data_type, legacy=True)


def cast_texts(column: pa.Array, data_type: DataType) -> pa.LargeStringArray:
    """What Paimon's cast to a text gives of the values; NULL stays."""
    return _texts(column, data_type, legacy=False)


def joined(
    texts: Sequence[pa.LargeStringArray], count: int, around: str, names: Sequence[str] = ()
) -> pa.LargeStringArray:
    """The texts of each row between the two characters ``around``, with ', ' between them and NULL as 'null'.

    With ``names`` each has its name and '=' before it.
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
    # Each distinct value is formatted once: Java's rules of digits are Python code.
    if root in ("FLOAT", "DOUBLE"):
        bits = column.view(pa.int32() if root == "FLOAT" else pa.int64()).dictionary_encode()
        distinct, places = bits.dictionary.view(column.type), bits.indices
    else:
        coded = column.dictionary_encode()
        distinct, places = coded.dictionary, coded.indices
    if legacy and root in BINARY_ROOTS:
        texts = [value.hex() for value in distinct.to_pylist()]
    else:
        texts = [value_text(value, data_type, legacy) for value in distinct]
    return pa.array(texts, pa.large_string()).take(places)


def partition_rows(partitions: Sequence[bytes], types: Sequence[DataType]) -> pa.LargeStringArray:
    """Stored partitions as Paimon casts a row to a text: '{2025-12-31, 12}', '{}' where there are no columns."""
    columns = decode_rows(list(partitions), types) if types else []
    return joined([cast_texts(*pair) for pair in zip(columns, types)], len(partitions), "{}")
