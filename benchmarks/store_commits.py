"""Commits on an S3 server on loopback, and the very requests that they send, made bare."""

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
#: As for tests, a server that runs: JSON with the ``uri`` of a bucket and the `storage_options` for it.
_RUNNING = "LAKELSM_MINIO"
_START_SECONDS = 60.0


@contextmanager
def object_server() -> Iterator[tuple[str, dict[str, str]]]:
    """A place on a server and what opens it: one that runs, or moto's in a process of its own."""
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
    """Make a bucket as soon as its server answers."""
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
    """The library's store, which keeps what it is asked."""

    store: Any
    asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def ask(*given: Any, **more: Any) -> Any:
            self.asked.append((name, given, more))
            return getattr(self.store, name)(*given, **more)

        return ask


class StoreCommits:
    """Commits to new tables of one place."""

    def __init__(self, place: str, options: dict[str, str]) -> None:
        self._storage, self._root = open_storage(place, options)
        self._table: TableStore | None = None
        numbers = np.arange(COMMITS * _FILES)
        self._batches: Sequence[Sequence[ManifestEntry]] = [
            make_entries(part, top_level=False) for part in np.split(numbers, COMMITS)
        ]
        self._fresh = count()

    def contenders(self) -> list[Contender]:
        """Commits one after the other, and each in a process that has nothing in memory; and the same requests bare."""
        found = []
        for is_cold in (False, True):
            asked = self._recorded(is_cold)
            name, bare = (cold(ENGINE), cold(BARE_REQUESTS)) if is_cold else (ENGINE, BARE_REQUESTS)
            found.append(Contender(name, partial(self._commit, is_cold), self._make_table))
            found.append(Contender(bare, partial(self._ask, asked)))
        return found

    def _make_table(self) -> None:
        """A table with two snapshots, so that the last one goes on from another."""
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
        """What the commits ask of the store. The first run proves its conditions, and is not recorded."""
        recorder = _Recorder(self._opened())
        for _ in range(2):
            self._make_table()
            recorder.asked.clear()
            with mock.patch.object(object_client, "_opened_store", lambda *_: recorder):
                self._commit(is_cold)
        return recorder.asked

    def _opened(self) -> Any:
        assert isinstance(self._storage, object_client.ObjectClient)
        return self._storage.store

    def _ask(self, asked: Sequence[tuple[str, tuple[Any, ...], dict[str, Any]]]) -> None:
        """Make the same requests by the library alone. What is new gets a name of its own: replacing costs more."""
        store = self._opened()
        for name, (key, *given), more in asked:
            if name == "put" and not key.endswith("/LATEST"):
                key = f"{key}-{next(self._fresh)}"
            with suppress(FileNotFoundError):
                answer = getattr(store, name)(key, *given, **more)
                if name == "get":
                    answer.bytes()
