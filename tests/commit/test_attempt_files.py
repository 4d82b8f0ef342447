"""The rule that deletes files: each failure, in a writer and in a compactor, with faults of the file system."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import lakelsm
from lakelsm.commit.attempt_files import AttemptFiles, delete_unpublished, written_directories
from lakelsm.commit.commit_message import CommitOutcome
from lakelsm.compact.compactor import Compactor
from lakelsm.environment import SYSTEM
from lakelsm.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptTableError,
    InvalidInputError,
    LakelsmError,
    StorageError,
)
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.plan.compaction_plan import CompactionScope
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.snapshots.manifest_scan import read_live_entries
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO
from lakelsm.write.batch_write import BatchWriter
from lakelsm.write.level0_task import Level0Job
from tests.compact.local_table import ADDED, InlineRunner, LocalTable

COLUMNS = "p INT NOT NULL, id INT NOT NULL, v STRING"


class FaultyFileIO(LocalFileIO):
    """A FileIO that fails once as ``fault`` says. A file whose path contains ``undeletable`` cannot be deleted."""

    fault = ""
    undeletable = "\0"
    error: type[Exception] = PermissionError
    _mute = False

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        if "/manifest/" in path:
            if self.fault == "a manifest cannot be written":
                raise OSError(errno.ENOSPC, "No space left on device")
            if self.fault == "interrupted before it is published":
                raise KeyboardInterrupt
        super().write(path, data, durable)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        if self.fault == "the store refuses":
            raise StorageError("refused")
        if self.fault == "no answer":
            self._mute = True
            raise TimeoutError("no answer")
        created = super().create_if_absent(path, data)
        if self.fault == "interrupted when it is published":
            raise KeyboardInterrupt
        if "rolled back" in self.fault:
            if "tagged" in self.fault:
                super().write(path.replace("snapshot/snapshot-3", "tag/tag-x"), data)
            super().delete(path.replace("snapshot-3", "snapshot-2"))
        return created

    def read(self, path: str, limit: int | None = None) -> bytes:
        if self._mute and "/snapshot-" in path:
            raise TimeoutError("no answer")
        return super().read(path, limit)

    def delete(self, path: str) -> None:
        if self.undeletable in path:
            raise self.error("this file stays")
        super().delete(path)


@dataclass
class _Writer:
    """The part of a RowWriter that `InlineWriter` uses."""

    runner: InlineRunner

    def write(self, rows: Any, job: Level0Job) -> TaskMessages:
        raise NotImplementedError

    def written_rows(self, entries: Sequence[ManifestEntry]) -> Any:
        raise NotImplementedError


class InlineWriter(BatchWriter[Any]):
    """A writer whose tasks run in this process. ``after_tasks`` runs when they are done."""

    def __init__(self, table: LocalTable, store: TableStore, step: Callable[[str], None]) -> None:
        super().__init__(_Writer(table.runner), store, step)
        self._table = table

    def _execute(
        self, rows: Any, base: Snapshot | None, room: int, kind: CommitKind, names: AttemptNames, event_time: None
    ) -> TaskMessages:
        columns = self._table._columns(rows)
        messages = self._table._level0(self._store, columns, ADDED, base, base, names)
        if self._table.runner.after_tasks is not None:
            self._table.runner.after_tasks()
        return messages


@dataclass
class Attempt:
    """An operation on a table with rows: a write with changelog and index files, or a compaction with changelog.

    Both write file indexes beside their data files.
    """

    who: str
    root: Path

    def __post_init__(self) -> None:
        options = {"bucket": "-1", "changelog_producer": "input" if self.who == "writer" else "full-compaction"}
        options |= {"file_index__bloom_filter__columns": "v", "file_index__in_manifest_threshold": "0 b"}
        options["file_index__bloom_filter__v__items"] = "9"
        self.table = LocalTable(self.root, COLUMNS, ("p", "id"), ("p",), **options)
        self.table.write((1, 1, "a"), (1, 2, "a"), (2, 1, "a"))
        self.table.write((1, 1, "b"), (2, 1, "b"))
        self.before = self.files()
        self.file_io = FaultyFileIO()
        self.store = replace(self.table.store, file_io=self.file_io)

    def run(self, step: Callable[[str], None] = lambda name: None, batch_id: int = 7) -> Any:
        if self.who == "writer":
            rows: Any = lambda base: ((1, 1, "c"), (2, 9, "c"), (3, 1, "c"))  # noqa: E731
            return InlineWriter(self.table, self.store, step).change("DELETE", rows, "job", batch_id)
        return Compactor(self.table.runner, self.store).compact(CompactionScope(full=True))

    def files(self) -> set[str]:
        """Return the paths of data, changelog and index files on disk."""
        return {path.name for path in [*self.root.rglob("bucket-*/*"), *self.root.rglob("index/*")]}

    def metadata(self) -> set[str]:
        return {path.name for path in self.root.rglob("manifest/*")}

    @property
    def kinds(self) -> set[str]:
        return {name.partition("-")[0] for name in self.files() - self.before}


@pytest.fixture(params=["writer", "compactor"])
def attempt(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Attempt:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return Attempt(request.param, tmp_path / "t")


def test_published_files_are_kept(attempt: Attempt) -> None:
    attempt.run()
    assert attempt.kinds == ({"data", "changelog", "index"} if attempt.who == "writer" else {"data", "changelog"})
    assert attempt.table.latest.id == 3
    new = attempt.files() - attempt.before
    data = {name for name in new if name.startswith("data-") and name.endswith(".parquet")}
    assert {name for name in new if name.endswith(".index")} == {f"{name}.index" for name in data}


@pytest.mark.parametrize("error", [InvalidInputError("a task"), RuntimeError("a task"), KeyboardInterrupt("a task")])
def test_failed_tasks_also_delete_the_files_of_finished_tasks(attempt: Attempt, error: BaseException) -> None:
    seen: list[set[str]] = []

    def fail() -> None:
        seen.append(attempt.kinds)
        raise error

    attempt.table.runner.after_tasks = fail
    with pytest.raises(type(error), match="a task"):
        attempt.run()
    assert seen[0] >= {"data", "changelog"}, "the files existed"
    assert attempt.files() == attempt.before


@pytest.mark.parametrize(
    "fault, error", [("a manifest cannot be written", OSError), ("the store refuses", StorageError)]
)
def test_a_commit_that_fails_before_it_is_visible_deletes_all_files(
    attempt: Attempt, fault: str, error: type[Exception]
) -> None:
    attempt.file_io.fault, metadata = fault, attempt.metadata()
    with pytest.raises(error):
        attempt.run()
    assert attempt.files() == attempt.before
    assert attempt.metadata() == metadata
    assert attempt.table.latest.id == 2


@pytest.mark.parametrize("fault", ["interrupted before it is published", "interrupted when it is published"])
def test_a_signal_during_the_commit_proves_nothing_so_nothing_is_deleted(attempt: Attempt, fault: str) -> None:
    attempt.file_io.fault = fault
    with pytest.raises(KeyboardInterrupt):
        attempt.run()
    assert attempt.kinds >= {"data", "changelog"}
    assert attempt.table.names() <= attempt.files(), "no file of a visible snapshot is missing"


def test_an_unknown_outcome_deletes_nothing(attempt: Attempt) -> None:
    attempt.file_io.fault = "no answer"
    with pytest.raises(CommitOutcomeUnknownError, match="no file was deleted"):
        attempt.run()
    assert attempt.kinds >= {"data", "changelog"}


@pytest.mark.parametrize("is_tagged", [True, False])
def test_files_of_a_snapshot_that_is_deleted_with_its_base_are_kept_for_a_tag(attempt: Attempt, is_tagged: bool) -> None:
    attempt.file_io.fault, metadata = f"{'tagged and ' * is_tagged}rolled back", attempt.metadata()
    if attempt.who == "writer":
        with pytest.raises(CommitConflictError, match="base of snapshot 3 was rolled back"):
            attempt.run()
    else:
        assert attempt.run().status == "conflict"
    assert attempt.table.store.snapshots.ids() == [1]
    assert bool(attempt.files() - attempt.before) == bool(attempt.metadata() - metadata) == is_tagged
    if is_tagged:
        tagged = attempt.table.store.tags.get("x").snapshot
        named = read_live_entries(attempt.file_io, attempt.store.paths, tagged)
        assert named and {entry.file.file_name for entry in named} <= attempt.files()


def test_files_of_a_lost_attempt_are_deleted(attempt: Attempt) -> None:
    spoiled: set[str] = set()

    def rival() -> None:
        attempt.table.runner.after_tasks = None
        spoiled.update(attempt.files() - attempt.before)
        attempt.table.overwrite((1, 1, "rival"))

    attempt.table.runner.after_tasks = rival
    result = attempt.run()
    assert spoiled and not spoiled & attempt.files()
    assert attempt.table.names() <= attempt.files()
    if attempt.who == "compactor":
        assert (result.status, attempt.table.latest.id) == ("conflict", 3)
    else:
        assert (result.outcome.snapshot.id, len(result.entries)) == (4, 3), "the writer made a second attempt"


@pytest.mark.parametrize("error", [PermissionError, CorruptTableError])
@pytest.mark.parametrize("stays", ["changelog-", "/manifest/"])
def test_a_file_that_cannot_be_deleted_hides_no_outcome_and_does_not_keep_other_files(
    attempt: Attempt, stays: str, error: type[Exception]
) -> None:
    attempt.file_io.undeletable, attempt.file_io.error = stays, error
    attempt.file_io.fault = "the store refuses"
    with pytest.raises(StorageError, match="refused"):
        attempt.run()
    assert attempt.kinds == ({"changelog"} if stays == "changelog-" else set())
    attempt.file_io.fault = ""
    attempt.run()
    assert attempt.table.latest.id == 3


def test_a_batch_that_another_process_commits_concurrently_leaves_no_file(tmp_path: Path) -> None:
    attempt = Attempt("writer", tmp_path / "t")
    published: list[set[str]] = []

    def step(name: str) -> None:
        if name == "data-files-written" and not published:
            published.append(set())
            mine = attempt.files()
            attempt.run()
            published[0] = attempt.files() - mine

    result = attempt.run(step)
    assert result.outcome.already_committed and result.entries == ()
    assert attempt.files() == attempt.before | published[0]


def test_a_signal_in_a_later_attempt_deletes_the_files_of_the_first(tmp_path: Path) -> None:
    attempt = Attempt("writer", tmp_path / "t")
    first: set[str] = set()

    def rival() -> None:
        attempt.table.runner.after_tasks = None
        first.update(attempt.files() - attempt.before)
        attempt.table.write((1, 1, "rival"))
        attempt.file_io.fault = "interrupted when it is published"
        attempt.before = attempt.files()

    attempt.table.runner.after_tasks = rival
    with pytest.raises(KeyboardInterrupt):
        attempt.run()
    assert first and not first & attempt.files(), "the first attempt lost"
    assert attempt.table.names() <= attempt.files()
    assert attempt.table.latest.commit_user == "job"


def test_a_directory_that_cannot_be_listed_does_not_keep_files_of_others(attempt: Attempt) -> None:
    names = AttemptNames.new(SYSTEM.new_uuid)
    folder = next(attempt.root.rglob("bucket-0"))
    (folder / f"data-{names.uuid()}-0.parquet").touch()
    no_directory = attempt.root / "schema" / "schema-0"
    with pytest.raises(ValueError, match="original"), AttemptFiles(
        attempt.table.store, names, lambda: [str(no_directory), str(folder)]
    ):
        raise ValueError("original")
    assert attempt.files() == attempt.before


def test_a_write_may_have_put_files_in_the_index_and_in_every_bucket(tmp_path: Path) -> None:
    attempt = Attempt("writer", tmp_path / "t")
    (attempt.root / "q=1" / "bucket-0").mkdir(parents=True)
    (attempt.root / "p=1" / "other").mkdir()
    (attempt.root / "p=0").touch()  # A file, so it cannot be listed.
    found = [directory.removeprefix(f"{attempt.root}/") for directory in written_directories(attempt.table.store)]
    assert sorted(found) == ["index", "p=1/bucket-0", "p=2/bucket-0"]


@pytest.mark.parametrize("published", [True, False])
def test_the_outcome_of_a_commit_without_an_error_decides(tmp_path: Path, published: bool) -> None:
    attempt, names = Attempt("writer", tmp_path / "t"), AttemptNames.new(SYSTEM.new_uuid)
    folder = next(attempt.root.rglob("bucket-0"))
    file = folder / f"data-{names.uuid()}-0.parquet"
    file.touch()
    with AttemptFiles(attempt.table.store, names, lambda: [str(folder)]) as files:
        files.commit(lambda: CommitOutcome(None, files_published=published))
    assert file.exists() == published
    assert attempt.before <= attempt.files(), "files of other attempts are kept"


def test_deletion_continues_after_a_file_that_cannot_be_deleted(tmp_path: Path) -> None:
    file_io = FaultyFileIO()
    for name in "abc":
        (tmp_path / name).touch()
    file_io.undeletable = f"{tmp_path}/b"
    for error in (PermissionError, LakelsmError):
        file_io.error = error
        delete_unpublished(file_io, [f"{tmp_path}/{name}" for name in "abcd"])
        assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_no_other_module_deletes_the_files_of_an_attempt() -> None:
    package = Path(lakelsm.__file__).parent
    deleting = re.compile(r"file_io\.delete\(|\.delete_file\(|\bos\.(remove|unlink)\(|\.unlink\(")
    found = {str(path.relative_to(package)) for path in package.rglob("*.py") if deleting.search(path.read_text())}
    # Lookups delete their own files: caches on this machine, and the addresses and leases of a query service.
    stores = {f"lookup/store/{name}.py" for name in ("arrow_store", "store_file")}
    of_caches = {"lookup/cache_directory.py", *stores}
    of_services = {"lookup/service/service_access.py"}
    # The temporary file of `lakelsm sql --output`, which is no file of a table.
    of_output = {"cli/row_output.py"}
    # Snapshots, schemas and tags of a branch that is deleted or replaced, and no file that they name.
    of_branches = {"maintain/versions/branches.py", "maintain/versions/fast_forward.py"}
    # The storage executes deletions; a writer deletes its own files that no message names yet.
    storages = {f"storage/{name}.py" for name in ("local", "object_store")}
    deciding = {"commit/attempt_files.py", "format/data_file/rolling_writer.py", *storages}
    # Snapshot, tag and consumer files; the files that they name are deleted by `maintain/deletion/file_deletion.py`.
    versions = {f"maintain/versions/{name}.py" for name in ("consumers", "rollback", "tags")}
    of_names = {"commit/concurrent_rollback.py", "stream/consumer_progress.py", *versions}
    assert found == deciding | of_caches | of_services | of_branches | of_names | of_output
