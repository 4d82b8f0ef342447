"""The cost of checksums and durable files: ``python -m benchmarks.integrity_lane CONFIG OUT``.

Each operation is measured as lakelsm does it and without one part, alternately: files that a task writes and reads in
this process, and the same files scanned by Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.config import KEY, BenchConfig
from benchmarks.data import SCHEMA, rows
from benchmarks.floors import drain
from benchmarks.lane import run_lane
from benchmarks.names import ENGINE
from benchmarks.session import open_session
from benchmarks.timing import Contender, Measurement, measure
from benchmarks.workspace import remove
from lakelsm.format.data_file.file_check import ExpectedFile, FileCheck
from lakelsm.format.data_file.key_value_file import FileLayout, KeyValueReader, row_schema
from lakelsm.format.data_file.rolling_writer import RollingWriter
from lakelsm.format.file_names import FileNames
from lakelsm.format.manifest.data_file_meta import FileSource
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import TableSchema, column_mapping, create_schema
from lakelsm.storage import LocalFileIO

#: The table is smaller than that of the other lanes by this factor.
_SHARE = 4
_BATCH_ROWS = 1 << 17
_BATCH_BYTES = 16 << 20
_NO_PARTITION = bytes(12)


class Files:
    """Rows of the benchmark, written like those of a compaction task."""

    def __init__(self, config: BenchConfig) -> None:
        self.schema: TableSchema = create_schema(SCHEMA, [KEY], [], {"bucket": "1"}, None, 0)
        fields = row_schema(self.schema.fields)
        self.directory = config.scratch / "integrity"
        self._batches: list[pa.Table] = []
        for start in range(0, max(config.rows // _SHARE, 1), _BATCH_ROWS):
            ids = np.arange(start, min(start + _BATCH_ROWS, config.rows // _SHARE))
            columns = [pa.array(ids), pa.array(np.zeros(len(ids), np.int8)), *rows(ids, ids * 0).columns]
            self._batches.append(pa.table(columns, schema=fields))
        self.metas = self.write()

    def write(self, durable: bool = True) -> list[Any]:
        """Write all rows, and return the metadata of the files."""
        remove(self.directory)
        layout = replace(FileLayout.of(self.schema, TableOptions.parse({"bucket": "1"})), durable=durable)
        file_io = LocalFileIO()
        make_durable = file_io.make_durable if durable else None
        names = FileNames(str(uuid4()))
        writer = RollingWriter(
            file_io.filesystem(),
            str(self.directory),
            names,
            layout,
            level=5,
            file_source=FileSource.COMPACT,
            make_durable=make_durable,
        )
        for batch in self._batches:
            writer.write(batch)
        self.metas = writer.close()
        return self.metas

    def read(self, checked: bool = True) -> int:
        """Read all rows as a merge does, and return their number."""
        found = 0
        for meta in self.metas:
            check = FileCheck.of([ExpectedFile.of(meta, _NO_PARTITION)], self.schema)[0] if checked else None
            path, mapping = f"{self.directory}/{meta.file_name}", column_mapping(self.schema, self.schema)
            reader = KeyValueReader(LocalFileIO().filesystem(), path, mapping, check=check)
            found += sum(len(batch) for _, batch in reader.batches(lambda: _BATCH_BYTES))
        return found


@contextmanager
def without(name: str, **options: bool) -> Iterator[None]:
    """Make a class of pyarrow.parquet ignore an option that lakelsm sets, within the block."""
    original = getattr(pq, name)
    with mock.patch.object(pq, name, lambda *given, **more: original(*given, **{**more, **options})):
        yield


def run(config: BenchConfig) -> list[Measurement]:
    """Measure integrity-write, integrity-read and integrity-scan."""
    files = Files(config)

    def unchecked(act: Callable[[], object], name: str, option: str) -> object:
        with without(name, **{option: False}):
            return act()

    contenders: dict[str, Callable[[], list[Contender]]] = {
        "integrity-write": lambda: [
            Contender(ENGINE, files.write),
            Contender("without checksums", partial(unchecked, files.write, "ParquetWriter", "write_page_checksum")),
            Contender("without fsync", lambda: files.write(durable=False)),
        ],
        "integrity-read": lambda: [
            Contender(ENGINE, files.read),
            Contender(
                "without checks",
                partial(unchecked, lambda: files.read(checked=False), "ParquetFile", "page_checksum_verification"),
            ),
        ],
        "integrity-scan": lambda: _scans(config, files.directory),
    }
    results: list[Measurement] = []
    for operation in config.operations:
        results += measure(operation, contenders[operation](), config.turns)
    remove(files.directory)
    return results


def _scans(config: BenchConfig, directory: Path) -> list[Contender]:
    spark = open_session(config)

    def scan(verified: str) -> None:
        drain(spark.read.option("parquet.page.verify-checksum.enabled", verified).parquet(str(directory)))

    return [Contender(ENGINE, lambda: scan("true")), Contender("without checks", lambda: scan("false"))]


if __name__ == "__main__":
    sys.exit(run_lane(run, sys.argv[1:]))
