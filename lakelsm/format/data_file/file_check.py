"""Checks that a data file is the one that its manifest entry describes.

Parquet's page checksums detect damaged bytes, but not an older file under another file's name. A file is identified by
its size, its row count, the range of its sequence numbers, the range of its leading key column, and its partition. The
entry and the file's footer have all of them, so the check needs no request. Manifests of lakelsm also contain the
checksum of the footer, which Parquet lacks; it is compared before any part of the footer is decoded. For files of other
writers, and for page headers, decoding detects the damage.
"""

from __future__ import annotations

import errno
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as arrow_fs

from lakelsm.errors import CorruptTableError, LakelsmError, StorageError
from lakelsm.format.data_file.parquet_footer import read_footer
from lakelsm.format.manifest.data_file_meta import DataFileMeta
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.schema.system_columns import KEY_FIELD_PREFIX, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema
from lakelsm.storage.refusals import storage_error
from lakelsm.types import INTEGER_ROOTS, AtomicType, DataField

#: Exceptions of pyarrow for damaged Parquet bytes.
PARQUET_ERRORS = (OSError, ValueError, OverflowError, pa.ArrowException)

#: Errors of the operating system that do not depend on the content of the file, with the remedy.
_REFUSALS = {
    errno.EACCES: "Give this process the permission to read there",
    errno.EPERM: "Give this process the permission to read there",
    errno.EMFILE: "Raise the limit of open files (ulimit -n)",
    errno.ENFILE: "Raise the system's limit of open files",
    errno.ENOMEM: "Leave this process more memory",
    errno.EIO: "Check the disk",
    errno.ESTALE: "Mount the file system again",
    errno.ETIMEDOUT: "Check the file system's server",
}

#: Types whose Parquet statistics have the order of keys.
RANGED_ROOTS = (*INTEGER_ROOTS, "VARCHAR", "DATE")

#: The physical Parquet type of these types, unless it is INT32.
_PHYSICAL = {"BIGINT": "INT64", "VARCHAR": "BYTE_ARRAY"}

#: Compared bytes of a text: writers may cut the statistics of long texts, but not below this length.
_COMPARED_BYTES = 16

_REMEDY = "Restore the file, or read a snapshot from before it."

#: A column's name, minimum and maximum in Parquet's form: numbers, or UTF-8.
ColumnRange = tuple[str, object, object]


@dataclass(frozen=True, kw_only=True)
class ExpectedFile:
    """The properties of a data file in its manifest entry. Keys and the partition are BinaryRows with arity."""

    file_size: int
    row_count: int
    min_key: bytes
    max_key: bytes
    min_sequence_number: int
    max_sequence_number: int
    partition: bytes
    footer_checksum: int | None = None

    @staticmethod
    def of(file: DataFileMeta, partition: bytes) -> ExpectedFile:
        """Return the properties in the manifest entry of ``file`` in ``partition``."""
        return ExpectedFile(
            file_size=file.file_size,
            row_count=file.row_count,
            min_key=file.min_key,
            max_key=file.max_key,
            min_sequence_number=file.min_sequence_number,
            max_sequence_number=file.max_sequence_number,
            partition=partition,
            footer_checksum=file.footer_checksum,
        )


@dataclass(frozen=True)
class FileCheck:
    """Refuses a file that is not the expected one. ``schema`` is the schema that the file was written with."""

    expected: ExpectedFile
    ranges: Sequence[ColumnRange]
    schema: TableSchema

    @staticmethod
    def of(files: Sequence[ExpectedFile], schema: TableSchema) -> list[FileCheck]:
        """Return the checks of files of one schema."""
        return [FileCheck(file, ranges, schema) for file, ranges in zip(files, _known_ranges(files, schema))]

    def check_file(self, filesystem: arrow_fs.FileSystem, path: str) -> None:
        """Raise CorruptTableError unless the file at ``path`` exists and is the expected one."""
        try:
            with filesystem.open_input_file(path) as source:
                self.check_content(path, source)
                self.check_footer(path, pq.read_metadata(source))
        except StorageError:  # A failure of the store, not of the file.
            raise
        except PARQUET_ERRORS as error:
            raise unreadable(path, error) from error

    def check_content(self, path: str, source: pa.NativeFile) -> None:
        """Raise CorruptTableError unless an open file has the size and the footer of its manifest entry."""
        size, checksum = source.size(), self.expected.footer_checksum
        if size != self.expected.file_size:
            raise CorruptTableError(
                f"Data file {path} has {size} bytes instead of {self.expected.file_size}: it was truncated, extended or "
                f"replaced. {_REMEDY}"
            )
        if checksum is not None and zlib.crc32(read_footer(source)) != checksum:
            raise CorruptTableError(
                f"Data file {path} is damaged or replaced: the checksum of its footer differs from the one in the "
                f"manifest. {_REMEDY}"
            )

    def check_footer(self, path: str, footer: pq.FileMetaData) -> None:
        """Raise CorruptTableError if a file's footer contradicts its entry. Missing statistics are accepted."""
        expected, schema = self.expected, self.schema
        # Readers use the row groups. A damaged footer may have a wrong number of them.
        for rows in (footer.num_rows, sum(footer.row_group(group).num_rows for group in range(footer.num_row_groups))):
            if rows != expected.row_count:
                raise _replaced(path, f"{rows} rows", str(expected.row_count))
        missing, unknown = _other_columns(footer.schema, schema)
        if missing or unknown:
            column, has = (f"no column {min(missing)!r}", "one") if missing else (f"a column {min(unknown)!r}", "none")
            raise CorruptTableError(
                f"Data file {path} has {column}, but schema-{schema.id} of its manifest entry has {has}: the data file "
                f"or the schema file was damaged or replaced. {_REMEDY}"
            )
        retyped = _retyped(footer.schema, schema)
        if retyped is not None:
            raise _replaced(path, f"another Parquet type for {retyped!r}", f"schema {schema.id}")
        found = _range(footer, SEQUENCE_NUMBER)
        low, high = expected.min_sequence_number, expected.max_sequence_number
        if found is not None and not low <= found[0] <= found[1] <= high:
            raise _replaced(path, f"sequence numbers {found[0]} to {found[1]}", f"{low} to {high}")
        for name, *wanted in self.ranges:
            found = _range(footer, name)
            if found is not None and [_cut(value) for value in found] != [_cut(value) for value in wanted]:
                raise _replaced(path, f"{name} from {found[0]!r} to {found[1]!r}", f"{wanted[0]!r} to {wanted[1]!r}")


def unreadable(path: str, error: BaseException) -> LakelsmError:
    """Return the error for a data file that is missing or cannot be decoded: CorruptTableError.

    The error is a StorageError if the operating system refused the read for a reason other than the content.
    """
    refused = refused_read(f"Data file {path}", error)
    if refused is not None:
        return refused
    reason = "does not exist" if isinstance(error, FileNotFoundError) else f"is damaged or cannot be read: {error}"
    return CorruptTableError(f"Data file {path}, which the table names, {reason.rstrip('.')}. {_REMEDY}")


def refused_read(what: str, error: BaseException) -> StorageError | None:
    """Return the error if the operating system refused this process the read; None for any other error."""
    if not isinstance(error, OSError):
        return None
    remedy = _REFUSALS.get(error.errno or 0)
    if remedy is None:
        return None
    reason = " ".join(str(error).split()).rstrip(".")
    return storage_error(f"{what} cannot be read: {reason}. {remedy}, and run it again.", error)


def _known_ranges(files: Sequence[ExpectedFile], schema: TableSchema) -> list[list[ColumnRange]]:
    """Return, for each file, the columns with an exact range in its entry: the leading key's and the partition's."""
    ranges: list[list[ColumnRange]] = [[] for _ in files]
    keys = [field.type for field in schema.key_fields]
    leading = schema.field(schema.trimmed_primary_keys[0])
    if files and _is_ranged(leading):
        lows, highs = (_raw(decode_rows(rows, keys)[0]) for rows in zip(*((f.min_key, f.max_key) for f in files)))
        for known, low, high in zip(ranges, lows, highs):
            if low is not None and high is not None:  # Statistics omit the NULLs of `primary-key.nullable`.
                known.append((leading.name, low, high))
    if schema.partition_keys:
        columns = decode_rows([file.partition for file in files], [field.type for field in schema.partition_fields])
        for field, column in zip(schema.partition_fields, columns):
            for known, value in zip(ranges, _raw(column) if _is_ranged(field) else ()):
                if value is not None:
                    known.append((field.name, value, value))
    return ranges


def _is_ranged(field: DataField) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root in RANGED_ROOTS


def _raw(column: pa.Array) -> list[Any]:
    """Return values in Parquet's form."""
    physical = pa.int32() if pa.types.is_date32(column.type) else pa.binary() if pa.types.is_string(column.type) else None
    return list((column if physical is None else column.cast(physical)).to_pylist())


def _other_columns(stored: pq.ParquetSchema, schema: TableSchema) -> tuple[set[str], set[str]]:
    """Return the columns that a file of ``schema`` lacks, and those that it must not have.

    Partition columns are optional.
    """
    keys = {KEY_FIELD_PREFIX + name for name in schema.trimmed_primary_keys}
    known = {*schema.field_names, *keys, SEQUENCE_NUMBER, VALUE_KIND}
    needed = set(schema.field_names) - set(schema.partition_keys)
    found = set(stored.names)
    if not (found - known or needed - found):
        return set(), set()
    # Nested columns (or a wrong file): these are names of leaves. Names of columns may contain dots, as paths do.
    roots = {path: known & _starts(path) for path in (stored.column(at).path for at in range(len(stored)))}
    return needed.difference(*roots.values()), {path for path, names in roots.items() if not names}


def _starts(path: str) -> set[str]:
    """Return all names that the top-level column of a leaf may have."""
    parts = path.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts) + 1)}


def _retyped(stored: pq.ParquetSchema, schema: TableSchema) -> str | None:
    """Return a column of numbers, text or dates that has another type in the file; None if all types agree.

    pyarrow aborts the process if a column's metadata has another type than its schema. Column metadata is therefore
    not read before this check.
    """
    fields = (field for field in schema.fields if isinstance(field.type, AtomicType) and field.type.root in RANGED_ROOTS)
    expected = {field.name: _PHYSICAL.get(field.type.root, "INT32") for field in fields}
    expected[SEQUENCE_NUMBER] = "INT64"
    leaves = (stored.column(at) for at in range(len(stored)))
    # A member b of a ROW a has the path of a column a.b, but another name.
    kept = {leaf.name: leaf.physical_type for leaf in leaves if leaf.name == leaf.path}
    return next((name for name, kind in kept.items() if kind != expected.get(name, kind)), None)


def _range(footer: pq.FileMetaData, name: str) -> tuple[Any, Any] | None:
    """Return the minimum and maximum of a column; None if the file does not record them."""
    leaves = footer.schema.names
    if name not in leaves:
        return None
    lows, highs = [], []
    for group in range(footer.num_row_groups):
        column = footer.row_group(group).column(leaves.index(name))
        if column.path_in_schema != name:
            return None
        statistics = column.statistics
        if statistics is None or not statistics.has_min_max:
            return None
        lows.append(statistics.min_raw)
        highs.append(statistics.max_raw)
    return (min(lows), max(highs)) if lows else None


def _cut(value: object) -> object:
    return value[:_COMPARED_BYTES] if isinstance(value, bytes) else value


def _replaced(path: str, found: str, expected: str) -> CorruptTableError:
    return CorruptTableError(
        f"Data file {path} has {found}, but its manifest entry says {expected}: it was damaged or replaced. {_REMEDY}"
    )
