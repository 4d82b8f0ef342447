"""The maintenance after a commit: its order, `write-only` tables, and failures, which never fail the commit."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.environment import Environment
from lakelsm.errors import CorruptTableError
from lakelsm.maintain import after_commit
from lakelsm.snapshots.table_store import TableStore
from tests.processes import PATIENCE

ROWS = pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"]})


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that ran, each with the newest snapshot. The second step fails."""
    seen: list[str] = []

    def step(name: str) -> Callable[[TableStore, Environment], None]:
        def take(store: TableStore, environment: Environment) -> None:
            seen.append(f"{name} {store.snapshots.latest_id()}")
            if name == "two":
                raise CorruptTableError("tag-x cannot be read.")

        return take

    steps = [(f"step {name}", name, f"{name}()", step(name)) for name in ("one", "two", "three")]
    monkeypatch.setattr(after_commit, "STEPS", tuple(steps))
    return seen


def table(tmp_path: Path, **options: str) -> Table:
    catalog = Catalog(str(tmp_path))
    return catalog.create_table(
        "db.t", "id INT NOT NULL, v STRING", primary_key=["id"], options={"bucket": "1", **options}
    )


def test_every_commit_runs_all_steps_and_a_failure_is_a_warning(tmp_path: Path, seen: list[str]) -> None:
    made = table(tmp_path)
    with pytest.warns(UserWarning, match=r"db\.t: the commit succeeded, and step two after it failed: tag-x.*two\(\)"):
        assert made.write(ROWS).snapshot_id == 1
    assert seen == ["one 1", "two 1", "three 1"]
    seen.clear()
    with pytest.warns(UserWarning):
        made.delete("id = 1", engine="local")
    assert seen == ["one 2", "two 2", "three 2"]
    seen.clear()
    with pytest.warns(UserWarning):
        made.compact(full=True, engine="local")
    assert seen == ["one 3", "two 3", "three 3"]


def test_a_call_that_commits_nothing_runs_no_step(tmp_path: Path, seen: list[str]) -> None:
    made = table(tmp_path)
    with pytest.warns(UserWarning):
        made.write(ROWS, commit_user="job", batch_id=1)
    seen.clear()
    made.write(ROWS, commit_user="job", batch_id=1)
    made.delete("id = 7", engine="local")
    made.compact(full=True, dry_run=True, engine="local")
    assert seen == []


def test_a_commit_of_a_write_only_table_runs_no_step(tmp_path: Path, seen: list[str]) -> None:
    made = table(tmp_path, **{"write-only": "true"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.write(ROWS)
        made.compact(full=True, engine="local")
    assert seen == []


def test_asynchronous_steps_run_in_a_background_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    done = threading.Event()

    def step(store: TableStore, environment: Environment) -> None:
        threads.append(threading.current_thread().name)
        done.set()

    monkeypatch.setattr(after_commit, "STEPS", (("a step", "step", "step()", step),))
    table(tmp_path, **{"snapshot.expire.execution-mode": "async"}).write(ROWS)
    assert done.wait(PATIENCE)
    assert threads[0].startswith("lakelsm-upkeep")


def test_snapshots_expire_after_commits_by_the_options(tmp_path: Path) -> None:
    kept = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "3"}
    made = table(tmp_path, **kept)
    for _ in range(6):
        made.write(ROWS)
    assert len(made._store().snapshots.ids()) <= 3
    assert made.to_arrow().num_rows == 2
    other = table(tmp_path / "other", **kept, **{"write-only": "true"})
    for _ in range(6):
        other.write(ROWS)
    assert len(other._store().snapshots.ids()) == 6


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_its_own_background_thread() -> None:
    done = threading.Event()
    after_commit._BACKGROUND.submit(done.set)
    assert done.wait(PATIENCE)
    child = os.fork()
    if child == 0:
        done.clear()
        after_commit._BACKGROUND.submit(done.set)
        os._exit(0 if done.wait(PATIENCE) else 1)
    assert os.waitpid(child, 0)[1] == 0
