"""An Arrow file system on the objects of a store, for Parquet: ranged reads, and writes in parts.

Arrow's own clients of object stores know neither the URIs nor the options of `ObjectClient`, and tell errors otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs as arrow_fs

from lakelsm.storage.object_client import ObjectClient
from lakelsm.storage.object_location import ObjectStoreKind
from lakelsm.storage.store_failures import is_out_of_range

if TYPE_CHECKING:
    from obstore import WritableFile

#: The end of a file is read first, as Parquet needs it: smaller files are read whole by this one request.
_TAIL = 1 << 20
#: What a request reads at most beyond what is asked for, and at least where many columns are read side by side.
_MAX_AHEAD = 1 << 20
_LEAST_AHEAD = 1 << 17
#: Bytes that an open file keeps of what was read ahead.
_MAX_KEPT = 16 << 20
#: Bytes of a part of a file that is written, and how many parts are on the way at a time.
_PART = 8 << 20
_PARTS_AT_ONCE = 2


def object_filesystem(client: ObjectClient) -> arrow_fs.PyFileSystem:
    """The objects of a store as an Arrow file system whose paths are their URIs."""
    return arrow_fs.PyFileSystem(_Handler(client))


class _Handler(arrow_fs.FileSystemHandler):  # type: ignore[misc]
    """What Arrow asks of a file system. Operations that lakelsm has no use for are refused."""

    def __init__(self, client: ObjectClient) -> None:
        self._client = client

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Handler) and other._client == self._client

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        return "lakelsm-objects"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[arrow_fs.FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: arrow_fs.FileSelector) -> list[arrow_fs.FileInfo]:
        raise NotImplementedError("lists are asked of FileIO")

    def create_dir(self, path: str, recursive: bool) -> None:
        """There are no directories."""

    def delete_dir(self, path: str) -> None:
        raise NotImplementedError("directories are deleted by FileIO")

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise NotImplementedError("directories are deleted by FileIO")

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError("a whole store is not emptied")

    def delete_file(self, path: str) -> None:
        self._client.delete(path)

    def move(self, src: str, dest: str) -> None:
        raise NotImplementedError("objects are not renamed")

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError("objects are not copied")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_ObjectReader(self._client, path), mode="r")

    def open_output_stream(self, path: str, metadata: object = None) -> pa.NativeFile:
        return pa.PythonFile(_ObjectWriter(self._client, path), mode="w")

    def open_append_stream(self, path: str, metadata: object = None) -> pa.NativeFile:
        raise NotImplementedError("objects are not appended to")

    def _info(self, path: str) -> arrow_fs.FileInfo:
        try:
            return arrow_fs.FileInfo(path, arrow_fs.FileType.File, size=self._client.size(path))
        except FileNotFoundError:
            return arrow_fs.FileInfo(path, arrow_fs.FileType.NotFound)


@dataclass
class _Window:
    """A range of an object that was read at once; ``used`` of its bytes have been asked for."""

    start: int
    data: bytes
    used: int = 0


class _ObjectReader:
    """A file object on an object. Its end is read when it is opened, other parts when they are asked for, and ahead."""

    def __init__(self, client: ObjectClient, path: str) -> None:
        self._client = client
        self._path = path
        self._key = client.key(path)
        self._position = 0
        self._windows: list[_Window] = []
        self._ahead = _MAX_AHEAD
        known = client.kept_end(path)
        self._size, self._tail = known or self._end()
        if known is None:
            client.keep_end(path, self._size, self._tail)
        self.closed = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def tell(self) -> int:
        return self._position

    def size(self) -> int:
        return self._size

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._position + size, self._size)
        data = self._range(self._position, end) if end > self._position else b""
        self._position += len(data)
        return data

    def close(self) -> None:
        self._windows.clear()
        self.closed = True

    def flush(self) -> None:
        """Nothing is written."""

    def _range(self, start: int, end: int) -> bytes:
        first_of_tail = self._size - len(self._tail)
        if start >= first_of_tail:
            return self._tail[start - first_of_tail : end - first_of_tail]
        head_end = min(end, first_of_tail)
        parts: list[bytes] = []
        while start < head_end:
            parts.append(self._part(start, head_end))
            start += len(parts[-1])
        if end > head_end:
            parts.append(self._tail[: end - head_end])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _part(self, start: int, end: int) -> bytes:
        """Bytes from ``start`` on, up to ``end``; what was read ahead, or else more than is asked for."""
        for window in self._windows:
            if window.start <= start < window.start + len(window.data):
                part = window.data[start - window.start : end - window.start]
                window.used = max(window.used, start - window.start + len(part))
                self._windows.remove(window)
                if window.used < len(window.data):  # Columns are read from their beginning to their end.
                    self._windows.append(window)
                return part
        if end - start >= self._ahead:
            return self._asked(start, end)
        data = self._asked(start, min(start + self._ahead, self._size - len(self._tail)))
        self._windows.append(_Window(start, data, end - start))
        while sum(len(window.data) for window in self._windows) > _MAX_KEPT:
            self._windows.pop(0)  # In vain: so many columns are read side by side that less of each must do.
            self._ahead = max(self._ahead // 2, _LEAST_AHEAD)
        return data[: end - start]

    def _asked(self, start: int, end: int) -> bytes:
        client = self._client
        data = client.ask(self._path, lambda: bytes(client.store.get_range(self._key, start=start, end=end)))
        if len(data) != end - start:
            raise OSError(f"{self._path} has no {end - start} bytes from {start} on: it was replaced meanwhile")
        return data

    def _end(self) -> tuple[int, bytes]:
        client, key = self._client, self._key
        if client.place.kind is ObjectStoreKind.AZURE:  # It has no ranges that begin at the end.
            size = client.size(self._path)
            return size, self._asked(max(size - _TAIL, 0), size) if size else b""

        def end() -> tuple[int, bytes]:
            try:
                answer = client.store.get(key, options={"range": {"suffix": _TAIL}})
                return answer.meta["size"], bytes(answer.bytes())
            except Exception as error:  # Whatever it is goes on to be told, but of an empty object no range can be had.
                if is_out_of_range(error):
                    return 0, b""
                raise

        return client.ask(self._path, end)


class _ObjectWriter:
    """A file object that becomes an object when it is closed: by one request, or in parts where it is long."""

    def __init__(self, client: ObjectClient, path: str) -> None:
        self._client = client
        self._path = path
        self._position = 0
        #: What readers of a new file begin with, and its writer for its footer.
        self._end = bytearray()
        #: All that was written, until it is longer than a part: one request can be sent again as a whole.
        self._start: bytearray | None = bytearray()
        self._sink: WritableFile | None = None
        client.key(path)
        client.forget(path)
        self.closed = False

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        octets = memoryview(data).cast("B")
        self._position += len(octets)
        if self._start is not None:
            self._start += octets
            if len(self._start) > _PART:
                octets_so_far, self._start = self._start, None
                self._sink = self._opened()
                self._send(memoryview(octets_so_far))
        else:
            self._send(octets)
        self._end += octets[-_TAIL:]
        if len(self._end) > 2 * _TAIL:
            del self._end[:-_TAIL]
        return len(octets)

    def _opened(self) -> WritableFile:
        from obstore import open_writer

        client, key = self._client, self._client.key(self._path)
        return client.ask(
            self._path,
            lambda: open_writer(client.patient_store, key, buffer_size=_PART, max_concurrency=_PARTS_AT_ONCE),
            again=False,
        )

    def _send(self, octets: memoryview) -> None:
        """Hand bytes to the library, which sends a part again by itself, and not those of an answer that is cut."""
        sink = self._sink
        assert sink is not None
        self._client.ask(self._path, lambda: sink.write(octets), again=False)

    def flush(self) -> None:
        """What is written is visible once the object is closed, not before."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self._start is not None:
                self._client.write(self._path, bytes(self._start))
            elif self._sink is not None:
                self._client.ask(self._path, self._sink.close, again=False)
            self._client.keep_end(self._path, self._position, bytes(self._end[-_TAIL:]))
