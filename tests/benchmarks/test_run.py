"""A run continues after any failure of a lane, and reports it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import names
from benchmarks.__main__ import main
from benchmarks.config import GROUPS, BenchConfig
from benchmarks.merge_engines import MERGE_ENGINES
from benchmarks.run import ROOT, Runner, _ended, _run_before
from tests.processes import PATIENCE


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(BenchConfig(workdir=str(tmp_path), before="no-such-revision"))


def lane(folder: Path, text: str) -> Path:
    code = folder / "code"
    code.mkdir(exist_ok=True)
    (code / "some_lane.py").write_text(f"import sys, json, subprocess, time\n{text}\n", encoding="utf-8")
    return code


def test_the_measurements_of_a_lane_are_collected(runner: Runner, tmp_path: Path) -> None:
    found = {"operation": "read", "contender": "x", "seconds": [1.0], "peaks": {"tree": 5}}
    code = lane(tmp_path, f"open(sys.argv[-1], 'w').write(json.dumps([{found!r}]))")
    runner.lane("some", "some_lane", ["read"], code=code)
    assert [(result.contender, result.median, result.peaks.tree) for result in runner.results] == [("x", 1.0, 5)]


def test_a_crashed_lane_is_a_failure_of_each_of_its_operations(runner: Runner, tmp_path: Path) -> None:
    runner.lane("some", "some_lane", ["read", "load"], code=lane(tmp_path, "sys.exit(3)"))
    assert [(result.operation, result.contender, result.error) for result in runner.results] == [
        ("read", "some", "exit status 3"),
        ("load", "some", "exit status 3"),
    ]


def test_a_hanging_lane_is_killed_with_its_children(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = tmp_path / "pid"
    sleeper = f"child = subprocess.Popen([{sys.executable!r}, '-c', 'import time; time.sleep(600)'])"
    code = lane(tmp_path, f"{sleeper}\nopen({str(pid_file)!r}, 'w').write(str(child.pid))\ntime.sleep(600)")
    wait = subprocess.Popen.wait

    def once_it_sleeps(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        while timeout is not None and process.poll() is None and not (pid_file.exists() and pid_file.read_text()):
            time.sleep(0.02)
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", once_it_sleeps)
    runner.lane("some", "some_lane", ["read"], code=code, max_seconds=1.5)
    assert [result.error for result in runner.results] == ["not done after 2 s"]
    end = time.monotonic() + PATIENCE
    while state_of(pid_file.read_text()) not in ("", "Z"):
        assert time.monotonic() < end
        time.sleep(0.02)


def state_of(pid: str) -> str:
    """Return the state of a process from `ps`; '' if it does not exist."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False)
    return shown.stdout.strip()[:1]


def test_an_interrupted_run_ends_its_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    wait = lane.wait

    def interrupted(timeout: float | None = None) -> int:
        monkeypatch.setattr(lane, "wait", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr(lane, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _ended(lane, None)
    assert lane.poll() == -signal.SIGKILL


def test_an_unknown_revision_is_a_failure_with_its_name(runner: Runner) -> None:
    _run_before(runner, {"upsert", "read"})
    (result,) = runner.results
    assert (result.operation, result.contender) == ("upsert", "lakelsm before")
    assert "no-such-revision" in result.error


def test_a_lane_reads_the_same_configuration(tmp_path: Path) -> None:
    more = {"peer_pythons": {"chdb": "/x/python"}, "coordinates": {"x": "a:b:1"}}
    config = BenchConfig(workdir=str(tmp_path), rows=7, operations=("read",), **more)
    assert BenchConfig.from_json(config.to_json()) == config
    assert json.loads(config.to_json())["rows"] == 7


def test_the_page_of_the_harness_names_every_contender_and_group() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    constants = {value for name, value in vars(names).items() if name.isupper()} - set(MERGE_ENGINES)
    shown = page.replace("Spark parquet scan, copy, append", "Spark parquet scan Spark parquet copy Spark parquet append")
    assert [name for name in constants if name not in shown] == []
    assert [group for group in GROUPS if f"`{group}`" not in page] == []


@pytest.mark.parametrize(("files", "refused"), [("999", "999 is less than 1000"), ("many", "invalid")])
def test_synthetic_metadata_has_a_file_for_each_snapshot_that_replaces_one(
    files: str, refused: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--files", files])
    assert refused in capsys.readouterr().err
