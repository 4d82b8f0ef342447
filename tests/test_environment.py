"""Time, random numbers and ids come from an Environment only, and the same environment gives the same run."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lakelsm.environment import SYSTEM, Environment, login_and_host
from tests.compact.local_table import LocalTable

ROOT = Path(__file__).parent.parent
BANNED = re.findall(r'^"(\S+)"\.msg = "take it', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
_asked = {"time": 0, "id": 0}


def _clock() -> int:
    _asked["time"] += 250
    return 1_700_000_000_000 + _asked["time"]


def _new_uuid() -> str:
    _asked["id"] += 1
    return f"{_asked['id']:08x}-0000-4000-8000-{_asked['id']:012x}"


def _simulated() -> Environment:
    _asked.update(time=0, id=0)
    return Environment(clock=_clock, local_offset=lambda seconds: 3600, new_uuid=_new_uuid, chance=lambda: 0.5)


def _history(root: Path) -> dict[str, bytes]:
    """Write, delete, overwrite and compact; return every file of the table."""
    table = LocalTable(root, "p INT NOT NULL, id INT NOT NULL, v STRING", ("p", "id"), ("p",), changelog_producer="input")
    table.environment = _simulated()
    table.write((1, 1, "a"), (2, 1, "a"), (2, 2, "a"))
    table.delete((2, 1, "a"))
    table.overwrite((1, 7, "b"), partitions=None)
    table.write((1, 7, "c"))
    table.compact()
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_the_same_environment_gives_the_same_files_byte_for_byte(tmp_path: Path) -> None:
    first, second = _history(tmp_path / "first"), _history(tmp_path / "second")
    assert len(first) > 20
    assert first == second


def test_creation_times_follow_the_clock_and_zone_of_the_environment(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.environment = _simulated()
    table.write((1, "a"))
    table.write((1, "b"))
    table.compact()
    created = [entry.file.creation_time_millis for entry in table.live()]
    assert all(1_700_003_600_000 < time < 1_700_003_700_000 for time in created)
    assert 1_700_000_000_000 < table.latest.time_millis < 1_700_000_100_000


def test_the_local_wall_clock_is_read_as_if_it_were_utc() -> None:
    assert Environment(local_offset=lambda seconds: -seconds).local_wall_clock(5_500) == 500


def test_the_system_environment_is_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(SYSTEM)) == SYSTEM
    assert len(pickle.dumps(SYSTEM)) < 500


def _complaints(code: str, file: str) -> str:
    command = [sys.executable, "-m", "ruff", "check", "--select", "TID251", "--stdin-filename", file, "-"]
    return subprocess.run(command, input=code, capture_output=True, text=True, cwd=ROOT).stdout


@pytest.mark.parametrize("file", ["lakelsm/commit/new.py", "lakelsm/spark/new.py"])
def test_the_linter_refuses_other_clocks_and_random_numbers(file: str) -> None:
    code = "".join(
        f"import {name}\n" if "." not in name else f"import {name.rpartition('.')[0]}\n{name}\n" for name in BANNED
    )
    code += "from uuid import uuid4\nfrom time import time as now\nfrom datetime import datetime\ndatetime.now()\n"
    found = _complaints(code, file)
    for name in BANNED:
        assert f"`{name}` is banned: take it from the Environment" in found
    assert found.count("TID251") >= len(BANNED) + 3


def test_the_linter_allows_clocks_in_environment_and_tests() -> None:
    for file in ("lakelsm/environment.py", "tests/commit/new.py", "benchmarks/new.py", "jobs/new.py"):
        assert "TID251" not in _complaints("import time\ntime.time()\n", file)


def test_the_user_of_a_process_is_reported_if_the_system_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("uid 1234")

    monkeypatch.setattr("getpass.getuser", lambda: "me")
    assert login_and_host()[0] == "me" and login_and_host()[1] != ""
    monkeypatch.setattr("getpass.getuser", nobody)
    assert login_and_host()[0] == ""
