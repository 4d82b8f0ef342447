"""Commits on an S3 server on loopback, and the same requests sent by the library alone."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any
from unittest import mock
from urllib.error import URLError
from urllib.request import Request, urlopen
from uuid import uuid4

import numpy as np

from benchmarks.metadata import make_entries, schema
from benchmarks.names import BARE_REQUESTS, ENGINE, cold
from benchmarks.timing import Contender
from lakelsm.commit.commit_message import CommitMessage
from lakelsm.commit.committer import Committer
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import CommitKind
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import object_client, open_storage

COMMITS = 10
_FILES = 10
#: A running server, as for the tests: JSON with the ``uri`` of a bucket and its `storage_options`.
_RUNNING = "LAKELSM_MINIO"
_START_SECONDS = 60.0


@contextmanager
def object_server() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield a location on a server and its options: LAKELSM_MINIO, or moto in a separate process."""
    if given := os.environ.get(_RUNNING):
        options = json.loads(given)
        yield f"{options.pop('uri')}/{uuid4()}", options
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _make_bucket(f"{endpoint}/bench")
        keys = {"s3.access-key": "bench", "s3.secret-key": "bench", "s3.path.style.access": "true"}
        yield "s3://bench/warehouse", {"s3.endpoint": endpoint, **keys}
    finally:
        server.kill()
        server.wait()


def _make_bucket(url: str) -> None:
    """Create a bucket as soon as its server answers."""
    until = time.monotonic() + _START_SECONDS
    while True:
        try:
            urlopen(Request(url, method="PUT", data=b""), timeout=5).close()
            return
        except (URLError, OSError):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


@dataclass
class _Recorder:
    """The library's store, which records its requests."""

    store: Any
    requests: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def record(*given: Any, **more: Any) -> Any:
            self.requests.append((name, given, more))
            return getattr(self.store, name)(*given, **more)

        return record


class StoreCommits:
    """Commits to new tables below one location."""

    def __init__(self, location: str, options: dict[str, str]) -> None:
        self._storage, self._root = open_storage(location, options)
        self._table: TableStore | None = None
        numbers = np.arange(COMMITS * _FILES)
        self._batches: Sequence[Sequence[ManifestEntry]] = [
            make_entries(part, top_level=False) for part in np.split(numbers, COMMITS)
        ]
        self._fresh = count()

    def contenders(self) -> list[Contender]:
        """Return commits one after the other, the same with nothing in memory, and the bare requests of both."""
        found = []
        for is_cold in (False, True):
            requests = self._recorded(is_cold)
            name, bare = (cold(ENGINE), cold(BARE_REQUESTS)) if is_cold else (ENGINE, BARE_REQUESTS)
            found.append(Contender(name, partial(self._commit, is_cold), self._make_table))
            found.append(Contender(bare, partial(self._send, requests)))
        return found

    def _make_table(self) -> None:
        """Create a table with two snapshots, so that the last one has a predecessor."""
        paths = TablePaths(f"{self._root}/t{next(self._fresh)}")
        self._storage.write(paths.schema_file(0), json.dumps(schema()).encode())
        self._table = TableStore.within(self._storage, paths.root)
        for base in (None, 1):
            number = (COMMITS + (base or 0)) * _FILES
            entries = make_entries(np.arange(number, number + _FILES), top_level=False)
            message = CommitMessage(entries=entries, base_snapshot_id=base)
            Committer(self._table).commit(CommitKind.APPEND, message, "bench")

    def _commit(self, is_cold: bool) -> None:
        assert self._table is not None
        for base, entries in enumerate(self._batches, 2):
            if is_cold:
                object_client.OBJECT_CACHE.clear()
            message = CommitMessage(entries=entries, base_snapshot_id=base)
            Committer(self._table).commit(CommitKind.APPEND, message, "bench")

    def _recorded(self, is_cold: bool) -> Sequence[tuple[str, tuple[Any, ...], dict[str, Any]]]:
        """Return the requests of the commits. The first run also proves the store's conditions, and is not recorded."""
        recorder = _Recorder(self._opened())
        for _ in range(2):
            self._make_table()
            recorder.requests.clear()
            with mock.patch.object(object_client, "_opened_store", lambda *_: recorder):
                self._commit(is_cold)
        return recorder.requests

    def _opened(self) -> Any:
        assert isinstance(self._storage, object_client.ObjectClient)
        return self._storage.store

    def _send(self, requests: Sequence[tuple[str, tuple[Any, ...], dict[str, Any]]]) -> None:
        """Send the same requests by the library alone. New objects get new names, because replacing costs more."""
        store = self._opened()
        for name, (key, *given), more in requests:
            if name == "put" and not key.endswith("/LATEST"):
                key = f"{key}-{next(self._fresh)}"
            with suppress(FileNotFoundError):
                answer = getattr(store, name)(key, *given, **more)
                if name == "get":
                    answer.bytes()
