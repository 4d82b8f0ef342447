"""The task that opens data files: it reads footers, and all rows of some files, and compares vectors and indexes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lakelsm.errors import LakelsmError
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.format.data_file.file_check import PARQUET_ERRORS, FileCheck
from lakelsm.format.data_file.file_index_location import FileIndexLocation
from lakelsm.format.data_file.vector_location import read_vectors
from lakelsm.format.index.file_index.file_index import FileIndex
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.row.bucket_hash import BucketFunction
from lakelsm.maintain.check.file_rows import ExpectedRows, FileRows
from lakelsm.maintain.check.rules import (
    DATA_FILE_FOOTER,
    DATA_FILE_UNREADABLE,
    FILE_INDEX_FALSE,
    FILE_INDEX_UNREADABLE,
    HASH_INDEX_UNREADABLE,
    STATISTICS,
    VECTOR_UNREADABLE,
    Rule,
)
from lakelsm.merge.merge_unit import RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.read.stored_rows import TASK_MEMORY
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.hash_indexes import HashIndex
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import FileIO
from lakelsm.types import contiguous, to_arrow

#: The rows that tasks yield: findings, and rows without a rule, which contain counts.
AUDIT_SCHEMA = pa.schema(
    [
        pa.field("rule", pa.string()),
        pa.field("thing", pa.string()),
        pa.field("problem", pa.string()),
        pa.field("files_opened", pa.int64()),
        pa.field("files_read", pa.int64()),
        pa.field("rows_read", pa.int64()),
    ]
)

#: The size of a batch of rows. The values computed from it take several times as much memory.
_BATCH_BYTES = 8 << 20
#: Rows of a batch that are compared with the indexes of a file.
_COMPARED_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class AuditedFile:
    """A data file of a bucket, with its entry. ``in_full``: all rows are read, otherwise only the footer."""

    file: RunFile
    entry: ManifestEntry
    in_full: bool
    index: FileIndexLocation | None
    is_changelog: bool = False


@dataclass(frozen=True, kw_only=True)
class AuditedBucket:
    """Files of one bucket, and its HASH index if it has one."""

    files: tuple[AuditedFile, ...]
    hash_index: HashIndex | None


class AuditReport:
    """The findings and counts of a task."""

    def __init__(self) -> None:
        self._rows: list[tuple[str | None, str, str, int, int, int]] = []

    def add(self, rule: Rule, thing: str, problem: str) -> None:
        """Add a finding."""
        self._rows.append((rule.name, thing, problem, 0, 0, 0))

    def count(self, files_opened: int = 0, files_read: int = 0, rows_read: int = 0) -> None:
        """Add counts of opened and read files, and of rows."""
        self._rows.append((None, "", "", files_opened, files_read, rows_read))

    def batch(self) -> pa.RecordBatch:
        """Return findings and counts as rows of `AUDIT_SCHEMA`."""
        columns = list(zip(*self._rows)) or [()] * len(AUDIT_SCHEMA)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, AUDIT_SCHEMA)]
        return pa.record_batch(arrays, schema=AUDIT_SCHEMA)


@dataclass(frozen=True, kw_only=True)
class FileAudit:
    """The task. ``schemas`` has every schema that the files name."""

    file_io: FileIO
    schemas: Mapping[int, TableSchema]
    function: BucketFunction

    @staticmethod
    def of(store: TableStore, schemas: Mapping[int, TableSchema]) -> FileAudit:
        """Return the task for the files of a table."""
        return FileAudit(
            file_io=store.file_io, schemas=schemas, function=store.options.bucket_function_type.value
        )

    @property
    def memory_bytes(self) -> int:
        """The maximum memory of a unit, in bytes."""
        return TASK_MEMORY

    def __call__(self, buckets: Sequence[AuditedBucket]) -> Iterator[pa.RecordBatch]:
        """Yield the findings and counts of buckets as rows of `AUDIT_SCHEMA`."""
        for bucket in buckets:
            report = AuditReport()
            self._audit_vectors(bucket, report)
            hashes = self._hashes(bucket, report)
            checks = self._checks(bucket.files)
            for file, check in zip(bucket.files, checks):
                if file.in_full:
                    expected = ExpectedRows(self.function, hashes, in_order=not file.is_changelog)
                    self._audit_rows(file, expected, report)
                else:
                    self._audit_footer(file, check, report)
                self._audit_ids(file, report)
            report.count(files_opened=len(bucket.files))
            yield report.batch()

    def _checks(self, files: Sequence[AuditedFile]) -> list[FileCheck]:
        """Return the checks that compare each file with its entry, in the order of the files."""
        found: dict[int, FileCheck] = {}
        for schema_id in {file.file.schema_id for file in files}:
            indexes = [index for index, file in enumerate(files) if file.file.schema_id == schema_id]
            expected = [known for index in indexes if (known := files[index].file.expected) is not None]
            found.update(zip(indexes, FileCheck.of(expected, self.schemas[schema_id]), strict=True))
        return [found[index] for index in range(len(files))]

    def _audit_footer(self, file: AuditedFile, check: FileCheck, report: AuditReport) -> None:
        try:
            check.check_file(self.file_io.filesystem(), file.file.path)
        except LakelsmError as error:
            report.add(DATA_FILE_FOOTER, file.file.path, str(error))

    def _audit_ids(self, file: AuditedFile, report: AuditReport) -> None:
        """Compare the column ids of a file with those of its schema. Reads with later schemas find columns by id."""
        schema, path = self.schemas[file.file.schema_id], file.file.path
        try:
            with self.file_io.filesystem().open_input_file(path) as source:
                stored = pq.read_metadata(source).schema.to_arrow_schema()
        except (LakelsmError, *PARQUET_ERRORS):
            return  # The file is already a finding.
        for column in schema.fields:
            index = stored.get_field_index(column.name)
            field_id = None if index < 0 else (stored.field(index).metadata or {}).get(b"PARQUET:field_id")
            if field_id is not None and int(field_id) != column.id:
                problem = f"its column {column.name!r} has id {int(field_id)}, but schema-{schema.id} says {column.id}"
                report.add(DATA_FILE_FOOTER, path, problem)
                return

    def _audit_rows(self, file: AuditedFile, expected: ExpectedRows, report: AuditReport) -> None:
        schema, path = self.schemas[file.file.schema_id], file.file.path
        names = schema.field_names
        reader = RunReader(self.file_io, schema, schemas=self.schemas, columns=names, memory_bytes=TASK_MEMORY)
        try:
            opened = reader.open_file(file.file)
        except LakelsmError as error:
            report.add(DATA_FILE_FOOTER, path, str(error))
            return
        index = self._opened_index(file, report)
        try:
            rows = FileRows(file.entry, schema, expected)
        except (LakelsmError, KeyError) as error:
            report.add(STATISTICS, path, f"the statistics of its entry cannot be read: {error}")
            return
        count = 0
        try:
            for start, batch in opened.batches(lambda: _BATCH_BYTES):
                count += len(batch)
                rows.add(start, batch)
                if index is not None and not self._matches(index, file, start, batch, report):
                    index = None
        except LakelsmError as error:
            report.add(DATA_FILE_UNREADABLE, path, str(error))
        else:
            for rule, problem in rows.problems():
                report.add(rule, path, problem)
        report.count(files_read=1, rows_read=count)

    def _opened_index(self, file: AuditedFile, report: AuditReport) -> FileIndex | None:
        if file.index is None:
            return None
        try:
            return file.index.read(self.file_io.filesystem())
        except LakelsmError as error:
            report.add(FILE_INDEX_UNREADABLE, _index_path(file), str(error))
            return None

    def _matches(self, index: FileIndex, file: AuditedFile, start: int, rows: pa.Table, report: AuditReport) -> bool:
        """Return whether the indexes of a file match the next rows."""
        try:
            wrong = _wrong_column(index, self.schemas[file.file.schema_id], start, rows)
        except LakelsmError as error:
            report.add(FILE_INDEX_UNREADABLE, _index_path(file), str(error))
            return False
        if wrong is None:
            return True
        report.add(FILE_INDEX_FALSE, _index_path(file), f"the index of {wrong!r} excludes a value of the data file")
        return False

    def _audit_vectors(self, bucket: AuditedBucket, report: AuditReport) -> None:
        masking = [(file.file.vector, file.file.row_count) for file in bucket.files if file.file.vector is not None]
        vectors = read_vectors(self.file_io.filesystem(), masking)
        for location, _ in masking:
            try:
                next(vectors)
            except LakelsmError as error:
                report.add(VECTOR_UNREADABLE, location.index_path, str(error))
                return

    def _hashes(self, bucket: AuditedBucket, report: AuditReport) -> npt.NDArray[np.int32] | None:
        if bucket.hash_index is None:
            return None
        try:
            return np.sort(bucket.hash_index.read(self.file_io))
        except LakelsmError as error:
            report.add(HASH_INDEX_UNREADABLE, bucket.hash_index.path, str(error))
            return None


def _index_path(file: AuditedFile) -> str:
    """Return the path of a file's indexes: a file named in its entry, or the data file, whose entry contains them."""
    return (file.index.path if file.index is not None else None) or file.file.path


def _wrong_column(index: FileIndex, schema: TableSchema, start: int, rows: pa.Table) -> str | None:
    """Return a column whose index excludes one of the first values of a batch; None if all match."""
    compared = rows.slice(0, _COMPARED_ROWS)
    for field in schema.fields:
        if field.name in index.columns:
            values = cast_column(contiguous(compared.column(field.name)), to_arrow(field.type))
            if index.contradicts(field, values, start):
                return field.name
    return None
