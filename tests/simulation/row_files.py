"""Data files of a few rows, written, compacted and read row by row: the simplest reference of a merge.

Their manifest entries are real, and the engine's own writer, compactor and plans work with them.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from lakelsm.environment import Environment
from lakelsm.format.file_names import AttemptNames, FileNames
from lakelsm.format.manifest import EMPTY_STATS, DataFileMeta, FileKind, ManifestEntry
from lakelsm.format.manifest.data_file_meta import FileSource
from lakelsm.format.paths import TablePaths
from lakelsm.format.row.binary_row import encode_row
from lakelsm.merge.merge_unit import KeySearch, MergeUnit, RunFile
from lakelsm.plan.read_plan import ReadPlan
from lakelsm.plan.rewrite_units import RewriteUnit
from lakelsm.runner.runner import Task
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.storage import FileIO
from lakelsm.types import AtomicType
from lakelsm.write.level0_task import Level0Job

ADDED, DELETED = 0, 3
#: A row of a batch: (partition, id, kind, v).
InputRow = tuple[str, int, int, str]
#: A row of a file: (partition, id, sequence number, kind, v).
StoredRow = tuple[str, int, int, int, str]
#: The rows of a table: v by (partition, id).
State = Mapping[tuple[str, int], str]

_INT, _STRING = AtomicType("INT"), AtomicType("VARCHAR", length=2147483647)
#: The maximum number of rows in a file, so that runs of buckets have several files.
_ROWS_A_FILE = 3


class DoubledRowError(Exception):
    """A read shows a key twice, or shows a retraction."""


@lru_cache(4096)
def key_row(value: int) -> bytes:
    """Return a key as in manifest entries."""
    return encode_row([value], [_INT])


@lru_cache(256)
def partition_row(value: str) -> bytes:
    """Return a partition as in manifest entries."""
    return encode_row([value], [_STRING])


def bucket_of(key: int, total: int) -> int:
    """Return the bucket of a key."""
    return key % total


def merged(rows: Iterable[StoredRow]) -> dict[tuple[str, int], StoredRow]:
    """Return the row of each key with the highest sequence number. Raises DoubledRowError for two equal numbers."""
    newest: dict[tuple[str, int], StoredRow] = {}
    for row in rows:
        key = row[:2]
        known = newest.get(key)
        if known is None or known[2] < row[2]:
            newest[key] = row
        elif known[2] == row[2]:
            raise DoubledRowError(f"two rows of key {key} have sequence number {row[2]}: {known}, {row}")
    return newest


def shown(newest: Mapping[tuple[str, int], StoredRow]) -> dict[tuple[str, int], str]:
    """Return the rows that a read shows, without retractions."""
    return {key: row[4] for key, row in newest.items() if row[3] == ADDED}


def stored_rows(data: bytes) -> list[StoredRow]:
    """Return the rows of a file."""
    rows: list[StoredRow] = pickle.loads(data)
    return rows


def read_rows(file_io: FileIO, plan: ReadPlan) -> dict[tuple[str, int], str]:
    """Return the rows that a plan shows. Raises DoubledRowError if a key has several rows."""
    found: dict[tuple[str, int], str] = {}

    def show(rows: Iterable[StoredRow]) -> None:
        for partition, key, _, kind, value in rows:
            if kind != ADDED:
                raise DoubledRowError(f"a retraction of key {(partition, key)} is shown")
            if (partition, key) in found:
                raise DoubledRowError(f"key {(partition, key)} is shown twice")
            found[partition, key] = value

    for file in plan.raw_files:
        show(stored_rows(file_io.read(file.path)))
    for unit in plan.units:
        show(row for row in merged(_rows_of(file_io, unit)).values() if row[3] == ADDED)
    return found


def _rows_of(file_io: FileIO, unit: MergeUnit) -> Iterator[StoredRow]:
    low = unit.lower[0] if unit.lower else None
    high = unit.upper[0] if unit.upper else None
    for run in unit.runs:
        for file in run:
            for row in stored_rows(file_io.read(file.path)):
                if (low is None or row[1] >= low) and (high is None or row[1] < high):  # type: ignore[operator]
                    yield row


@dataclass(frozen=True)
class FileWriter:
    """Writes sorted rows of a bucket to files."""

    file_io: FileIO
    environment: Environment

    def write(self, directory: str, names: FileNames, rows: Sequence[StoredRow], level: int) -> list[DataFileMeta]:
        """Write rows, one for each key, in key order to files of a few rows."""
        rows = sorted(rows, key=lambda row: row[1])
        metas = []
        for start in range(0, len(rows), _ROWS_A_FILE):
            part = rows[start : start + _ROWS_A_FILE]
            name, data = names.next("data-"), pickle.dumps(part)
            self.file_io.write(f"{directory}/{name}", data)
            numbers = [row[2] for row in part]
            metas.append(
                DataFileMeta(
                    file_name=name,
                    file_size=len(data),
                    row_count=len(part),
                    min_key=key_row(part[0][1]),
                    max_key=key_row(part[-1][1]),
                    key_stats=EMPTY_STATS,
                    value_stats=EMPTY_STATS,
                    min_sequence_number=min(numbers),
                    max_sequence_number=max(numbers),
                    schema_id=0,
                    level=level,
                    creation_time_millis=self.environment.clock(),
                    delete_row_count=sum(row[3] != ADDED for row in part),
                    file_source=FileSource.COMPACT if level else FileSource.APPEND,
                    value_stats_cols=(),
                )
            )
        return metas


class RowFileWriter:
    """The `RowWriter` for simulated rows."""

    def __init__(self, runner: RowFileRunner) -> None:
        self.runner = runner

    def write(self, rows: Sequence[InputRow], job: Level0Job) -> TaskMessages:
        """Number the rows of each bucket, and write the last row of each key."""
        writer = FileWriter(job.file_io, job.environment)
        buckets: dict[tuple[str, int], dict[int, InputRow]] = {}
        for row in rows:
            buckets.setdefault((row[0], bucket_of(row[1], job.total_buckets)), {})[row[1]] = row
        messages = TaskMessages()
        for (partition, bucket), last in buckets.items():
            directory = job.paths.bucket_dir([("dt", partition)], bucket)
            numbered = [
                (partition, key, job.first_sequence + at, kind, value)
                for at, (_, key, kind, value) in enumerate(last.values())
            ]
            metas = writer.write(directory, FileNames(job.names.uuid()), numbered, 0)
            bucket_of_rows = partition_row(partition), bucket, job.total_buckets
            messages.entries += [ManifestEntry(FileKind.ADD, *bucket_of_rows, file=meta) for meta in metas]
        return messages

    def written_rows(self, entries: Sequence[ManifestEntry]) -> Sequence[InputRow]:
        """Return the rows of files that this writer wrote."""
        rows: list[InputRow] = []
        for entry in entries:
            data = self.runner.file_io.read(self.runner.path_of(entry))
            rows += [(partition, key, kind, value) for partition, key, _, kind, value in stored_rows(data)]
        return rows


class RowFileRunner:
    """The `Runner` for simulated rows. It runs compactions and searches of keys immediately."""

    name, cores = "simulated", 2

    def __init__(self, file_io: FileIO, environment: Environment, paths: TablePaths) -> None:
        self.file_io = file_io
        self._environment = environment
        self._paths = paths

    def path_of(self, entry: ManifestEntry) -> str:
        """Return the path of a file."""
        return data_path(self._paths, entry)

    def messages(self, units: Sequence[Any], task: Task[Any], paths: TablePaths, names: AttemptNames) -> TaskMessages:
        """Run units row by row. Other tests cover what the task does in Arrow."""
        messages = TaskMessages()
        for unit in units:
            if isinstance(unit, KeySearch):
                self._search(unit, messages)
            else:
                self._rewrite(unit, names, messages)
        return messages

    def batches(
        self, units: Sequence[Any], task: Task[Any], schema: pa.Schema, paths: TablePaths
    ) -> Iterator[pa.RecordBatch]:
        """The tasks' own batches: those of searches of files are metadata alone."""
        for unit in units:
            yield from task(unit)

    def _rewrite(self, unit: RewriteUnit, names: AttemptNames, messages: TaskMessages) -> None:
        rows = [row for section in unit.sections for row in merged(_rows_of(self.file_io, section)).values()]
        if unit.drop_delete:
            rows = [row for row in rows if row[3] == ADDED]
        writer = FileWriter(self.file_io, self._environment)
        metas = writer.write(unit.directory, FileNames(names.uuid()), rows, unit.output_level)
        bucket_of_rows = unit.partition, unit.bucket, unit.total_buckets
        messages.entries += [ManifestEntry(FileKind.ADD, *bucket_of_rows, file=meta) for meta in metas]

    def _search(self, unit: KeySearch, messages: TaskMessages) -> None:
        wanted = {row[1] for row in self._rows(unit.source)}
        for target in unit.targets:
            row_indexes = [at for at, row in enumerate(self._rows(target)) if row[1] in wanted]
            if row_indexes:
                messages.positions.setdefault(unit.bucket, {})[target.name] = BitMap(row_indexes)

    def _rows(self, file: RunFile) -> list[StoredRow]:
        return stored_rows(self.file_io.read(file.path))


@lru_cache(4096)
def _partition_of(row: bytes) -> str:
    from lakelsm.format.row.binary_row import decode_row

    return str(decode_row(row, [_STRING])[0])


def data_path(paths: TablePaths, entry: ManifestEntry) -> str:
    """Return the path of an entry's file."""
    return paths.data_file([("dt", _partition_of(entry.partition))], entry.bucket, entry.file.file_name)
