"""Contents of objects that this process has read or written and whose names are never used again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock


class KeptObjects:
    """The contents used last, up to ``max_bytes`` of them. For threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._contents: OrderedDict[Hashable, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable) -> bytes | None:
        """The content kept under a key, if any."""
        with self._lock:
            content = self._contents.get(key)
            if content is not None:
                self._contents.move_to_end(key)
            return content

    def keep(self, key: Hashable, content: bytes) -> None:
        """Keep a content; others make room for it. One that would take more than a quarter is not kept."""
        if len(content) > self._max_bytes // 4:
            return
        with self._lock:
            self._bytes += len(content) - len(self._contents.pop(key, b""))
            self._contents[key] = content
            while self._bytes > self._max_bytes:
                _, oldest = self._contents.popitem(last=False)
                self._bytes -= len(oldest)

    def forget(self, key: Hashable) -> None:
        """Keep nothing under a key."""
        with self._lock:
            self._bytes -= len(self._contents.pop(key, b""))

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._contents.clear()
            self._bytes = 0
