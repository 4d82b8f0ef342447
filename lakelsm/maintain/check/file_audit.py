"""The task that opens data files: their footers, and of some all rows, compared with their vectors and indexes."""

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
from lakelsm.maintain.check.file_rows import FileRows, RowExpectations
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

#: What tasks of a check yield: findings, and rows without a rule, which count what was looked at.
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

#: Bytes of a batch of rows: what is worked out of one takes several times as much.
_BATCH_BYTES = 8 << 20
#: Rows of a batch that are compared with the indexes of a file.
_ASKED_VALUES = 4096


@dataclass(frozen=True, kw_only=True)
class AuditedFile:
    """A data file of a bucket, as a task reads it, with its entry; ``in_full``: with all rows, not the footer alone."""

    file: RunFile
    entry: ManifestEntry
    in_full: bool
    index: FileIndexLocation | None
    is_changelog: bool = False


@dataclass(frozen=True, kw_only=True)
class AuditedBucket:
    """Files of one bucket, and its HASH index where it has one."""

    files: tuple[AuditedFile, ...]
    hash_index: HashIndex | None


class AuditReport:
    """Findings of a task, and counts of what it looked at."""

    def __init__(self) -> None:
        self._rows: list[tuple[str | None, str, str, int, int, int]] = []

    def find(self, rule: Rule, thing: str, problem: str) -> None:
        """Take a finding."""
        self._rows.append((rule.name, thing, problem, 0, 0, 0))

    def count(self, files_opened: int = 0, files_read: int = 0, rows_read: int = 0) -> None:
        """Count what was looked at."""
        self._rows.append((None, "", "", files_opened, files_read, rows_read))

    def batch(self) -> pa.RecordBatch:
        """All of it, as `AUDIT_SCHEMA` has it."""
        columns = list(zip(*self._rows)) or [()] * len(AUDIT_SCHEMA)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, AUDIT_SCHEMA)]
        return pa.record_batch(arrays, schema=AUDIT_SCHEMA)


@dataclass(frozen=True, kw_only=True)
class FileAudit:
    """The task. ``schemas`` has every schema that a file names."""

    file_io: FileIO
    schemas: Mapping[int, TableSchema]
    function: BucketFunction

    @staticmethod
    def of(store: TableStore, schemas: Mapping[int, TableSchema]) -> FileAudit:
        """The task for files of a table."""
        return FileAudit(
            file_io=store.file_io, schemas=schemas, function=store.options.bucket_function_type.value
        )

    @property
    def memory_bytes(self) -> int:
        """What a unit holds at most."""
        return TASK_MEMORY

    def __call__(self, buckets: Sequence[AuditedBucket]) -> Iterator[pa.RecordBatch]:
        """Yield findings and counts of some buckets, as `AUDIT_SCHEMA` has them."""
        for bucket in buckets:
            report = AuditReport()
            self._audit_vectors(bucket, report)
            hashes = self._hashes(bucket, report)
            checks = self._checks(bucket.files)
            for file, check in zip(bucket.files, checks):
                if file.in_full:
                    place = RowExpectations(self.function, hashes, in_order=not file.is_changelog)
                    self._audit_rows(file, place, report)
                else:
                    self._audit_footer(file, check, report)
                self._audit_ids(file, report)
            report.count(files_opened=len(bucket.files))
            yield report.batch()

    def _checks(self, files: Sequence[AuditedFile]) -> list[FileCheck]:
        """What compares each file with its entry, in the order of the files."""
        found: dict[int, FileCheck] = {}
        for schema_id in {file.file.schema_id for file in files}:
            places = [at for at, file in enumerate(files) if file.file.schema_id == schema_id]
            expected = [known for at in places if (known := files[at].file.expected) is not None]
            found.update(zip(places, FileCheck.of(expected, self.schemas[schema_id]), strict=True))
        return [found[at] for at in range(len(files))]

    def _audit_footer(self, file: AuditedFile, check: FileCheck, report: AuditReport) -> None:
        try:
            check.check_file(self.file_io.filesystem(), file.file.path)
        except LakelsmError as error:
            report.find(DATA_FILE_FOOTER, file.file.path, str(error))

    def _audit_ids(self, file: AuditedFile, report: AuditReport) -> None:
        """Compare the ids of a file's columns with its schema's. Reads of later schemas find columns by them."""
        schema, path = self.schemas[file.file.schema_id], file.file.path
        try:
            with self.file_io.filesystem().open_input_file(path) as source:
                stored = pq.read_metadata(source).schema.to_arrow_schema()
        except (LakelsmError, *PARQUET_ERRORS):
            return  # It is a finding already.
        for column in schema.fields:
            at = stored.get_field_index(column.name)
            said = None if at < 0 else (stored.field(at).metadata or {}).get(b"PARQUET:field_id")
            if said is not None and int(said) != column.id:
                problem = f"its column {column.name!r} has id {int(said)}, and schema-{schema.id} says {column.id}"
                report.find(DATA_FILE_FOOTER, path, problem)
                return

    def _audit_rows(self, file: AuditedFile, place: RowExpectations, report: AuditReport) -> None:
        schema, path = self.schemas[file.file.schema_id], file.file.path
        names = schema.field_names
        reader = RunReader(self.file_io, schema, schemas=self.schemas, columns=names, memory_bytes=TASK_MEMORY)
        try:
            opened = reader.open_file(file.file)
        except LakelsmError as error:
            report.find(DATA_FILE_FOOTER, path, str(error))
            return
        index = self._opened_index(file, report)
        try:
            rows = FileRows(file.entry, schema, place)
        except (LakelsmError, KeyError) as error:
            report.find(STATISTICS, path, f"the statistics of its entry cannot be read: {error}")
            return
        count = 0
        try:
            for start, batch in opened.batches(lambda: _BATCH_BYTES):
                count += len(batch)
                rows.add(start, batch)
                if index is not None and not self._is_true(index, file, start, batch, report):
                    index = None
        except LakelsmError as error:
            report.find(DATA_FILE_UNREADABLE, path, str(error))
        else:
            for rule, problem in rows.problems():
                report.find(rule, path, problem)
        report.count(files_read=1, rows_read=count)

    def _opened_index(self, file: AuditedFile, report: AuditReport) -> FileIndex | None:
        if file.index is None:
            return None
        try:
            return file.index.read(self.file_io.filesystem())
        except LakelsmError as error:
            report.find(FILE_INDEX_UNREADABLE, _index_path(file), str(error))
            return None

    def _is_true(self, index: FileIndex, file: AuditedFile, start: int, rows: pa.Table, report: AuditReport) -> bool:
        """Whether a file's indexes match the next rows."""
        try:
            denied = _denied(index, self.schemas[file.file.schema_id], start, rows)
        except LakelsmError as error:
            report.find(FILE_INDEX_UNREADABLE, _index_path(file), str(error))
            return False
        if denied is None:
            return True
        report.find(FILE_INDEX_FALSE, _index_path(file), f"an index of {denied!r} denies a value that the data file has")
        return False

    def _audit_vectors(self, bucket: AuditedBucket, report: AuditReport) -> None:
        masking = [(file.file.vector, file.file.row_count) for file in bucket.files if file.file.vector is not None]
        vectors = read_vectors(self.file_io.filesystem(), masking)
        for place, _ in masking:
            try:
                next(vectors)
            except LakelsmError as error:
                report.find(VECTOR_UNREADABLE, place.index_path, str(error))
                return

    def _hashes(self, bucket: AuditedBucket, report: AuditReport) -> npt.NDArray[np.int32] | None:
        if bucket.hash_index is None:
            return None
        try:
            return np.sort(bucket.hash_index.read(self.file_io))
        except LakelsmError as error:
            report.find(HASH_INDEX_UNREADABLE, bucket.hash_index.path, str(error))
            return None


def _index_path(file: AuditedFile) -> str:
    """The location of a file's indexes: in its entry, named by the data file's path, or beside it."""
    return (file.index.path if file.index is not None else None) or file.file.path


def _denied(index: FileIndex, schema: TableSchema, start: int, rows: pa.Table) -> str | None:
    """A column of which a file's indexes deny one of the first values of a batch."""
    asked = rows.slice(0, _ASKED_VALUES)
    for field in schema.fields:
        if field.name in index.columns:
            values = cast_column(contiguous(asked.column(field.name)), to_arrow(field.type))
            if index.contradicts(field, values, start):
                return field.name
    return None
