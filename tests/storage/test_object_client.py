"""Requests for single objects, on an S3 server on loopback."""

from __future__ import annotations

import os
import pickle
import signal

import pytest

from lakelsm.errors import CorruptTableError, LakelsmError
from tests.storage.object_server import ObjectServer, opened


def test_a_file_above_the_limit_is_refused(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    file_io.write(f"{root}/a", b"12345")
    assert file_io.read(f"{root}/a", 5) == b"12345"
    with pytest.raises(CorruptTableError, match="has 5 bytes; a file of its kind has at most 4"):
        file_io.read(f"{root}/a", 4)


def test_it_can_be_pickled_and_shows_no_secret(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    file_io.write(f"{root}/a", b"1")
    copy = pickle.loads(pickle.dumps(file_io.within(root)))
    assert copy.read(f"{root}/a") == b"1"
    assert "test-secret" not in repr(file_io) + repr(copy) and "test-access" not in repr(file_io)


def test_nothing_outside_the_root_is_opened(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    kept = file_io.within(f"{root}/t")
    for path in [f"{root}/u/a", f"{root}/tt", f"{root}/t/../u/a"]:
        for operation in (kept.read, kept.list, kept.delete, kept.check_file, kept.check_directory):
            with pytest.raises(CorruptTableError, match="outside the table's directory"):
                operation(path)


def test_manifests_are_read_once_a_process_unless_uncached(object_server: ObjectServer) -> None:
    storage, root = opened(object_server)
    file_io, path = storage.within(f"{root}/t"), f"{root}/t/manifest/manifest-1"
    file_io.write(path, b"1")
    storage.store.put("t/manifest/manifest-1", b"another's")  # type: ignore[attr-defined]
    with object_server.counted() as counts:
        assert file_io.read(path) == b"1"
    assert not counts
    assert file_io.uncached().read(path) == b"another's"
    file_io.delete(path)
    with pytest.raises(FileNotFoundError):
        file_io.read(path)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_forked_after_a_store_was_opened_gets_an_error_and_does_not_hang(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    file_io.write(f"{root}/a", b"1")
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # Without the check it would wait forever.
        try:
            result = f"read {file_io.read(f'{root}/a')!r}"
        except LakelsmError as error:
            result = f"{type(error).__name__}: {error}"
        os.write(there, result.encode())
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        result = pipe.read().decode()
    os.waitpid(child, 0)
    expected = f"UnsupportedFeatureError: s3://{file_io.location.bucket}: this process ({child}) was forked"
    assert result.startswith(expected) and "'spawn' or 'forkserver'" in result
    assert file_io.read(f"{root}/a") == b"1"
