"""The cores and memory that a process may use, by its machine and its control group."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.runner.process_limits import usable_cores, usable_memory


def written(groups: Path, name: str, text: str) -> Path:
    path = groups / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return groups


@pytest.mark.parametrize("text", ["max 100000\n", "", "nonsense"])
def test_a_group_without_a_quota_allows_the_cores_of_the_process(tmp_path: Path, text: str) -> None:
    assert usable_cores(written(tmp_path, "cpu.max", text)) == usable_cores(tmp_path / "none") >= 1


@pytest.mark.parametrize("quota", ["100000 100000\n", "150000 100000\n", "10000 100000\n"])
def test_a_quota_of_less_than_two_cores_allows_one(tmp_path: Path, quota: str) -> None:
    assert usable_cores(written(tmp_path, "cpu.max", quota)) == 1


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_limit_of_the_group_is_the_usable_memory(tmp_path: Path, name: str) -> None:
    assert usable_memory(written(tmp_path, name, "268435456\n")) == 256 << 20


def test_without_a_limit_the_memory_of_the_machine_is_usable(tmp_path: Path) -> None:
    machine = usable_memory(tmp_path / "none")
    assert machine > 256 << 20
    assert usable_memory(written(tmp_path, "memory.max", "max\n")) == machine
