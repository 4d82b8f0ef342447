"""A cache of objects that this process has read or written. The name of such an object is never used again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock


class ObjectCache:
    """The contents used last, at most ``max_bytes`` of them. Thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._contents: OrderedDict[Hashable, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable) -> bytes | None:
        """Return the content of a key, or None."""
        with self._lock:
            content = self._contents.get(key)
            if content is not None:
                self._contents.move_to_end(key)
            return content

    def keep(self, key: Hashable, content: bytes) -> None:
        """Store a content and drop the oldest ones. A content of more than a quarter of the limit is not stored."""
        if len(content) > self._max_bytes // 4:
            return
        with self._lock:
            self._bytes += len(content) - len(self._contents.pop(key, b""))
            self._contents[key] = content
            while self._bytes > self._max_bytes:
                _, oldest = self._contents.popitem(last=False)
                self._bytes -= len(oldest)

    def forget(self, key: Hashable) -> None:
        """Drop the content of a key."""
        with self._lock:
            self._bytes -= len(self._contents.pop(key, b""))

    def clear(self) -> None:
        """Drop all contents."""
        with self._lock:
            self._contents.clear()
            self._bytes = 0
