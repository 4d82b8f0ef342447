"""Files that Spark scans by itself, checked on the driver before it does.

Spark's reader verifies page checksums, but knows nothing of manifest entries, and fills a column that a footer lacks with
NULL. So the footers of files that no task of lakelsm opens are compared with their entries here, in threads. On local
storage that costs about as much as the look-up of the file that Spark makes anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from lakelsm.format.data_file.file_check import FileCheck
from lakelsm.merge.merge_unit import RunFile
from lakelsm.schema.table_schema import TableSchema
from lakelsm.storage import FileIO

_THREADS = 16


def check_files(file_io: FileIO, schemas: Mapping[int, TableSchema], files: Sequence[RunFile]) -> None:
    """Raise CorruptTableError naming the first of ``files`` that is missing, damaged or not the one its entry means."""
    filesystem = file_io.filesystem()
    paths: list[str] = []
    checks: list[FileCheck] = []
    for key, schema in schemas.items():
        expected = {file.path: file.expected for file in files if file.schema_id == key and file.expected is not None}
        paths += expected
        checks += FileCheck.of(list(expected.values()), schema)
    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(lambda path, check: check.stored(filesystem, path), paths, checks):
            pass
