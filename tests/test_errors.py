"""Each class of error with a call that raises it, its kind, and the exit status of a command; how the text of an error is
extended, and how an error leaves a task.
"""

from __future__ import annotations

import errno
import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, LakelsmError, Table, errors
from lakelsm.cli.exit_status import ExitStatus, status_of
from lakelsm.commit.commit_message import CommitMessage
from lakelsm.errors import ErrorKind, error_context
from lakelsm.format.data_file.file_check import unreadable
from lakelsm.format.snapshot import CommitKind
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.service.remote_cache import RemoteCache
from lakelsm.lookup.store.store_file import opened
from lakelsm.schema_changes import AddColumn
from lakelsm.spark.task_errors import error_text, lakelsm_error
from lakelsm.storage import LocalFileIO
from lakelsm.stream.change_feed import ChangeFeed
from lakelsm.stream.feed_settings import FeedSettings
from lakelsm.stream.stream_offset import StreamOffset
from lakelsm.types import parse_type
from tests.commit.commit_table import CommitTable, add, file, hash_index, interfering, upgrade, vector_index
from tests.failing_file_io import Plan, failing_table

ROWS = pa.table({"id": pa.array([1, 2], pa.int32()), "v": pa.array([1, 2], pa.int32())})


def made(root: Path, **options: str) -> Table:
    table = Catalog(str(root)).create_table(
        "db.t", "id INT, v INT", primary_key=["id"], options={"bucket": "1", "write-only": "true", **options}
    )
    table.write(ROWS)
    return table


def history_expired(root: Path) -> object:
    table = made(root)
    for number in (7, 8):
        table.write(ROWS, commit_user="job", batch_id=number)
    table.maintenance.expire_snapshots(retain_last=1)
    return table.write(ROWS, commit_user="job", batch_id=5)


def taken_user(root: Path) -> object:
    table = CommitTable(root)
    message = CommitMessage([add()])
    table.committer().commit(CommitKind.APPEND, message, "u", 0, query_id="one")
    return table.committer().committed("u", 1, "two")


def always_late(root: Path) -> object:
    table = CommitTable(root, {"commit.max-retries": "0"})
    table.append(add(file("a")))
    rival = interfering(lambda: table.append(add(file("b", seq=(10, 19)))))
    return table.committer(rival).commit(CommitKind.APPEND, CommitMessage([add(file("c"), bucket=1)]), "u")


def same_sequences(root: Path) -> object:
    table = CommitTable(root)
    table.append(add(), base_snapshot_id=None)
    return table.append(add(), base_snapshot_id=None)


def competing_assigners(root: Path) -> object:
    table = CommitTable(root)
    table.append(add(total=-1), index_adds=[hash_index("i1")])
    table.append(add(file(seq=(10, 11)), total=-1), index_adds=[hash_index("i2")], base_snapshot_id=1)
    mine = add(file(seq=(20, 21)), total=-1, bucket=1)
    return table.append(mine, index_adds=[hash_index("i3", bucket=1)], base_snapshot_id=1)


def rows_changed(root: Path) -> object:
    table = CommitTable(root)
    table.append(add(file("a")))
    table.append(add(file("b", seq=(10, 19))))
    message = CommitMessage([add(file("c", seq=(100, 101)))], base_snapshot_id=1, rows_as_of=1)
    return table.committer().commit(CommitKind.APPEND, message, "u", operation="DELETE")


def vectors_changed(root: Path) -> object:
    table = CommitTable(root, {"deletion-vectors.enabled": "true"})
    entry = add(file("a"))
    table.append(entry)
    table.compact(upgrade(entry, 5))
    for name in ("i1", "i2"):
        message = CommitMessage([], index_adds=[vector_index(name, "a")], base_snapshot_id=2)
        table.committer().commit(CommitKind.COMPACT, message, "u")
    return None


def lost_answer(root: Path) -> object:
    made(root)
    table = failing_table(root / "db.db" / "t", Plan(1, lambda: OSError("no answer")))
    kind = type(table._opened.file_io)

    def create(self: Any, path: str, data: bytes) -> bool:
        created = LocalFileIO.create_if_absent(self, path, data)
        self.plan.published = True
        raise OSError(f"no answer ({created})")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "create_if_absent", create)
        patch.setattr("time.sleep", lambda seconds: None)
        return table.write(ROWS)


def damaged(root: Path) -> object:
    table = made(root)
    next((root / "db.db" / "t" / "bucket-0").glob("data-*")).unlink()
    return table.to_arrow()


def full_disk(root: Path, number: int = errno.ENOSPC) -> object:
    table = made(root)

    def replace(source: object, target: object) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", replace)
        return table.write(ROWS)


def no_server(root: Path) -> object:
    """A lookup of a table whose only server does not answer."""
    table = made(root)
    path = Path(table._store().paths.lookup_service)
    path.parent.mkdir(exist_ok=True)
    path.write_text('["127.0.0.1:1"]')
    with table.lookup() as lookup:
        return lookup.get(1)


def no_service(root: Path) -> object:
    return RemoteCache.open(LookupSpec(made(root)._store(), ("id",), ("id", "v")))


def too_much_memory(root: Path) -> object:
    table = made(root)
    numbers = pa.array(range(200_000), pa.int32())
    table.write(pa.table({"id": numbers, "v": numbers}))
    with table.lookup(cache="memory", options={"lookup.cache-max-memory-size": "1 mb"}) as lookup:
        return lookup.get(1)


def columns_changed(root: Path) -> object:
    """A stream of a table that gets another column."""
    table = made(root)
    feed = ChangeFeed(table._store(), FeedSettings())
    end = feed.newest()
    Catalog(str(root)).alter_table("db.t", AddColumn("w", parse_type("INT")))
    table.write([{"id": 1, "v": 2, "w": 3}])
    return feed.next(end)


def no_java(root: Path) -> object:
    code = f"from lakelsm import Table\nTable.for_path({str(root / 'db.db' / 't')!r}).read()"
    made(root)
    env = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": "/nowhere"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    known = lakelsm_error(ran.stderr, str(root))
    if known is not None:
        raise known
    return ran


EXAMPLES: dict[str, tuple[ErrorKind, ExitStatus, Callable[[Path], object]]] = {
    "InvalidInputError": (ErrorKind.FIX, ExitStatus.FAILED, lambda root: made(root).to_arrow("nosuch = 1")),
    "TableNotFoundError": (ErrorKind.FIX, ExitStatus.FAILED, lambda root: Catalog(str(root)).table("db.none")),
    "TableAlreadyExistsError": (ErrorKind.FIX, ExitStatus.FAILED, lambda root: (made(root), made(root))),
    "SnapshotNotFoundError": (ErrorKind.FIX, ExitStatus.FAILED, lambda root: made(root).at(snapshot=99).to_arrow()),
    "StreamOffsetError": (ErrorKind.FIX, ExitStatus.FAILED, lambda root: StreamOffset.of_json({})),
    "StreamSchemaChangedError": (ErrorKind.RETRY, ExitStatus.CONFLICT, columns_changed),
    "BatchHistoryExpiredError": (ErrorKind.FIX, ExitStatus.FAILED, history_expired),
    "CommitUserTakenError": (ErrorKind.FIX, ExitStatus.FAILED, taken_user),
    "StorageError": (ErrorKind.FIX, ExitStatus.FAILED, full_disk),
    "StorageUnavailableError": (ErrorKind.RETRY, ExitStatus.CONFLICT, lambda root: full_disk(root, errno.ETIMEDOUT)),
    "OutOfMemoryError": (ErrorKind.FIX, ExitStatus.FAILED, too_much_memory),
    "SparkUnavailableError": (ErrorKind.FIX, ExitStatus.FAILED, no_java),
    "CommitConflictError": (ErrorKind.RETRY, ExitStatus.CONFLICT, always_late),
    "SequenceConflictError": (ErrorKind.RETRY, ExitStatus.CONFLICT, same_sequences),
    "BucketAssignConflictError": (ErrorKind.RETRY, ExitStatus.CONFLICT, competing_assigners),
    "RowsChangedError": (ErrorKind.RETRY, ExitStatus.CONFLICT, rows_changed),
    "VectorsChangedError": (ErrorKind.RETRY, ExitStatus.CONFLICT, vectors_changed),
    "CorruptTableError": (ErrorKind.CORRUPT, ExitStatus.FINDINGS, damaged),
    "CorruptStoreError": (ErrorKind.CORRUPT, ExitStatus.FINDINGS, lambda root: opened(root)),
    "LookupServiceError": (ErrorKind.RETRY, ExitStatus.CONFLICT, no_server),
    "LookupServiceSetupError": (ErrorKind.FIX, ExitStatus.FAILED, no_service),
    "UnsupportedFeatureError": (ErrorKind.UNSUPPORTED, ExitStatus.FAILED, lambda root: made(root).to_arrow("rand() = 2")),
    "CommitOutcomeUnknownError": (ErrorKind.UNKNOWN, ExitStatus.FAILED, lost_answer),
}


def subclasses(kind: type[LakelsmError]) -> set[type[LakelsmError]]:
    below = set(kind.__subclasses__())
    return below.union(*map(subclasses, below))


def test_the_table_has_each_class_of_this_module_with_its_kind() -> None:
    found = {error.__name__: error for error in subclasses(LakelsmError)}
    assert {name: error.kind for name, error in found.items()} == {name: kind for name, (kind, *_) in EXAMPLES.items()}
    wrong = [name for name, error in found.items() if error.__module__ != errors.__name__ or not inspect.getdoc(error)]
    assert wrong == []


def test_the_texts_of_kinds_do_not_change() -> None:
    assert [kind.value for kind in ErrorKind] == ["retry", "fix", "corrupt", "unsupported", "unknown"]
    assert {kind for kind, *_ in EXAMPLES.values()} == set(ErrorKind)


@pytest.mark.parametrize("name", EXAMPLES)
def test_calls_raise_each_error_and_it_can_be_pickled(tmp_path: Path, name: str) -> None:
    kind, status, example = EXAMPLES[name]
    with pytest.raises(LakelsmError) as raised:
        example(tmp_path)
    error = raised.value
    assert (type(error).__name__, error.kind, status_of(error)) == (name, kind, status)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
    arrived = lakelsm_error(f"Traceback\n{error_text(error)}\n", str(tmp_path))
    assert (type(arrived), arrived and arrived.kind) == (type(error), kind)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_error_keeps_its_class_kind_and_text_through_a_task_and_a_context(name: str) -> None:
    error = getattr(errors, name)("Table d.t: what is wrong")
    arrived = lakelsm_error(f"pyspark.errors.PythonException: Traceback\n{error_text(error)}\n\n\tat x", "/wh/d.db/t")
    with pytest.raises(type(error)) as raised, error_context("Table d.t"):
        raise type(error)("what is wrong")
    for found in (arrived, raised.value):
        assert found is not None
        assert (type(found), str(found), found.kind) == (type(error), str(error), EXAMPLES[name][0])
    assert str(raised.value.__cause__) == "what is wrong"


def test_other_errors_pass_a_context_unchanged() -> None:
    with pytest.raises(KeyError, match="'x'"), error_context("Table d.t"):
        raise KeyError("x")


def test_an_error_in_a_context_keeps_attributes_and_cause() -> None:
    cause = FileNotFoundError("missing")
    with pytest.raises(errors.VectorsChangedError) as raised, error_context("Table d.t"), error_context("bucket 0"):
        error = errors.VectorsChangedError("vectors changed", ("a", "b"))
        error.more = 1  # type: ignore[attr-defined]
        raise error from cause
    assert str(raised.value) == "Table d.t: bucket 0: vectors changed" and str(error) == "vectors changed"
    assert raised.value.files == ("a", "b") and raised.value.more == 1 and raised.value.__cause__ is cause
    assert pickle.loads(pickle.dumps(raised.value)).files == ("a", "b")


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        *((each, ErrorKind.FIX) for each in (errno.EACCES, errno.EMFILE, errno.ENOMEM, errno.EIO)),
        *((each, ErrorKind.CORRUPT) for each in (errno.ENOENT, errno.EISDIR, errno.EINVAL)),
        (errno.ETIMEDOUT, ErrorKind.RETRY),
    ],
)
def test_a_file_that_the_system_refuses_to_read_is_not_damage(number: int, kind: ErrorKind) -> None:
    path = "/wh/d.db/t/bucket-0/data-0.parquet"
    assert unreadable(path, OSError(number, os.strerror(number))).kind is kind
    assert unreadable(path, OSError("Couldn't deserialize thrift")).kind is ErrorKind.CORRUPT
