"""Sorted runs of rows that are larger than memory, in scratch files without a name.

A file never has a name (on systems without such files, its name is deleted when it is closed), so that it disappears with
the process. The directory is that of Python's `tempfile`, which TMPDIR sets.
"""

from __future__ import annotations

import logging
import mmap
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import IO

import pyarrow as pa

from lakelsm.errors import StorageError, error_context
from lakelsm.operation_log import log_step
from lakelsm.storage.refusals import refused_write

_LOG = logging.getLogger("lakelsm.local")
_CONTEXT = "Rows beyond 'write-buffer-size' are in scratch files, in the directory of TMPDIR"


class ScratchRun:
    """One complete run: the rows of some buckets, those of each bucket in order."""

    def __init__(self, data: pa.Buffer, pieces: dict[int, tuple[int, int]]) -> None:
        self._data = data
        self._pieces = pieces

    @property
    def codes(self) -> tuple[int, ...]:
        """The codes of the buckets in the run."""
        return tuple(self._pieces)

    def tables(self, code: int) -> Iterator[pa.Table]:
        """Yield the rows of a bucket, in the tables that were written."""
        start, stop = self._pieces.get(code, (0, 0))
        if start < stop:
            file = pa.ipc.open_file(pa.BufferReader(self._data))
            for number in range(start, stop):
                yield pa.Table.from_batches([file.get_batch(number)])


class ScratchSpace:
    """Writes runs, of at most ``max_bytes`` together. Leaving the context deletes them."""

    def __init__(self, schema: pa.Schema, max_bytes: int) -> None:
        self._schema = schema
        self._max_bytes = max_bytes
        self._used = 0
        self._files = ExitStack()

    def __enter__(self) -> ScratchSpace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # After a full disk, closing a file can fail again; its bytes are lost with it.
            self._files.close()

    def write(self, tables: Iterable[tuple[int, pa.Table]]) -> ScratchRun:
        """Write a run: tables of sorted rows, each with the code of its bucket; tables of one bucket are consecutive."""
        pieces: dict[int, tuple[int, int]] = {}
        with _refused():
            file = self._files.enter_context(_nameless_file())
            with pa.ipc.new_file(pa.PythonFile(file, "w"), self._schema) as sink:
                written = 0
                for code, rows in tables:
                    start, _ = pieces.get(code, (written, written))
                    written += len(batches := rows.combine_chunks().to_batches())
                    for batch in batches:
                        sink.write_batch(batch)
                    pieces[code] = (start, written)
                    self._check_space(file.tell())
            file.flush()
            self._used += file.tell()
            log_step(_LOG, "%d bytes of rows beyond write-buffer-size are in a scratch file", file.tell())
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return ScratchRun(pa.py_buffer(mapped), pieces)

    def _check_space(self, size: int) -> None:
        if self._used + size > self._max_bytes:
            raise StorageError(
                f"{_CONTEXT}, and need more than 'write-buffer-spill.max-disk-size' ({self._max_bytes} bytes). Nothing "
                "of this commit is visible. Raise one of the two options, or write the rows in several batches."
            )


def _nameless_file() -> IO[bytes]:
    return tempfile.TemporaryFile(prefix="lakelsm-rows-")


@contextmanager
def _refused() -> Iterator[None]:
    """Convert a refusal of the system to StorageError with the name of the directory."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        with error_context(_CONTEXT):
            raise refused_write(f"{tempfile.gettempdir()}/lakelsm-rows", error) from error
