"""An Arrow file system on the objects of a store, for Parquet: ranged reads, and writes in parts.

Arrow's own clients of object stores know neither the URIs nor the options of `ObjectClient`, and raise other errors.
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

#: A read begins with the end of a file, where Parquet has its footer. Smaller files are read by this one request.
_TAIL_BYTES = 1 << 20
#: Maximum and minimum bytes that a request reads ahead; the minimum applies if many columns are read in parallel.
_MAX_AHEAD_BYTES = 1 << 20
_MIN_AHEAD = 1 << 17
#: Bytes that an open file keeps of its windows.
_MAX_WINDOW_BYTES = 16 << 20
#: Bytes of one part of an upload, and how many parts are sent at a time.
_PART_BYTES = 8 << 20
_CONCURRENT_PARTS = 2


def object_filesystem(client: ObjectClient) -> arrow_fs.PyFileSystem:
    """Return the objects of a store as an Arrow file system whose paths are their URIs."""
    return arrow_fs.PyFileSystem(_Handler(client))


class _Handler(arrow_fs.FileSystemHandler):  # type: ignore[misc]
    """Arrow's protocol of a file system. Operations that lakelsm does not need are refused."""

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
        raise NotImplementedError("FileIO lists directories")

    def create_dir(self, path: str, recursive: bool) -> None:
        """Do nothing: an object store has no directories."""

    def delete_dir(self, path: str) -> None:
        raise NotImplementedError("FileIO deletes directories")

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise NotImplementedError("FileIO deletes directories")

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError("a whole store is never deleted")

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
    """A range of an object that one request read. Parquet has used the first ``used`` bytes of it."""

    start: int
    data: bytes
    used: int = 0


class _ObjectReader:
    """A file object on an object. It reads the end when it is opened, and other ranges, with read-ahead, on demand."""

    def __init__(self, client: ObjectClient, path: str) -> None:
        self._client = client
        self._path = path
        self._key = client.key(path)
        self._position = 0
        self._windows: list[_Window] = []
        self._ahead = _MAX_AHEAD_BYTES
        known = client.cached_end(path)
        self._size, self._tail = known or self._end()
        if known is None:
            client.cache_end(path, self._size, self._tail)
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
        """Do nothing: the file is not written."""

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
        """Return bytes from ``start`` on, at most up to ``end``, from a window or by a request that reads ahead."""
        for window in self._windows:
            if window.start <= start < window.start + len(window.data):
                part = window.data[start - window.start : end - window.start]
                window.used = max(window.used, start - window.start + len(part))
                self._windows.remove(window)
                if window.used < len(window.data):  # Otherwise nothing is left: columns are read in order.
                    self._windows.append(window)
                return part
        if end - start >= self._ahead:
            return self._fetched(start, end)
        data = self._fetched(start, min(start + self._ahead, self._size - len(self._tail)))
        self._windows.append(_Window(start, data, end - start))
        while sum(len(window.data) for window in self._windows) > _MAX_WINDOW_BYTES:
            self._windows.pop(0)  # Fetched for nothing: many columns are read side by side, so each reads less ahead.
            self._ahead = max(self._ahead // 2, _MIN_AHEAD)
        return data[: end - start]

    def _fetched(self, start: int, end: int) -> bytes:
        client = self._client
        data = client.send(self._path, lambda: bytes(client.store.get_range(self._key, start=start, end=end)))
        if len(data) != end - start:
            raise OSError(f"{self._path} has fewer than {end} bytes: it was replaced during the read")
        return data

    def _end(self) -> tuple[int, bytes]:
        client, key = self._client, self._key
        if client.location.kind is ObjectStoreKind.AZURE:  # Azure has no ranges that are counted from the end.
            size = client.size(self._path)
            return size, self._fetched(max(size - _TAIL_BYTES, 0), size) if size else b""

        def end() -> tuple[int, bytes]:
            try:
                answer = client.store.get(key, options={"range": {"suffix": _TAIL_BYTES}})
                return answer.meta["size"], bytes(answer.bytes())
            except Exception as error:  # `send` handles all but one: an empty object has no range.
                if is_out_of_range(error):
                    return 0, b""
                raise

        return client.send(self._path, end)


class _ObjectWriter:
    """A file object that creates its object when it is closed: by one request, or in parts if it is long."""

    def __init__(self, client: ObjectClient, path: str) -> None:
        self._client = client
        self._path = path
        self._position = 0
        #: The last bytes, with the footer: the writer and the readers of a new file need them first.
        self._end = bytearray()
        #: All bytes, while they are fewer than a part: one request can be repeated as a whole.
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
            if len(self._start) > _PART_BYTES:
                octets_so_far, self._start = self._start, None
                self._sink = self._opened()
                self._send(memoryview(octets_so_far))
        else:
            self._send(octets)
        self._end += octets[-_TAIL_BYTES:]
        if len(self._end) > 2 * _TAIL_BYTES:
            del self._end[:-_TAIL_BYTES]
        return len(octets)

    def _opened(self) -> WritableFile:
        from obstore import open_writer

        client, key = self._client, self._client.key(self._path)
        return client.send(
            self._path,
            lambda: open_writer(client.retrying_store, key, buffer_size=_PART_BYTES, max_concurrency=_CONCURRENT_PARTS),
            retry=False,
        )

    def _send(self, octets: memoryview) -> None:
        """Pass bytes to the library, which repeats a failed part, but not a part with an incomplete answer."""
        sink = self._sink
        assert sink is not None
        self._client.send(self._path, lambda: sink.write(octets), retry=False)

    def flush(self) -> None:
        """Do nothing: the bytes become visible when the object is closed."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self._start is not None:
                self._client.write(self._path, bytes(self._start))
            elif self._sink is not None:
                self._client.send(self._path, self._sink.close, retry=False)
            self._client.cache_end(self._path, self._position, bytes(self._end[-_TAIL_BYTES:]))
