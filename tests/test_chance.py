"""The tests draw the same samples in each run and order. `make fuzz` draws others, and repeats a run by its seed."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelsm.environment import SYSTEM
from tests import chance

ROOT = Path(__file__).resolve().parents[1]


def drawn() -> list[tuple[int, str]]:
    """Return what a property draws of kinds for which Hypothesis has constants."""
    found: list[tuple[int, str]] = []

    @settings(settings.get_profile("default"), max_examples=300)
    @given(st.integers(), st.text())
    def draw(number: int, text: str) -> None:
        found.append((number, text))

    draw()
    return found


def test_a_property_draws_the_same_with_any_loaded_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.get_profile("default").derandomize and settings.get_profile("default").database is None
    before = drawn()
    module = tmp_path / "loaded_by_another.py"
    module.write_text("\n".join(f"number_{at}, text_{at} = {at}, 'text {at}'" for at in range(7_000_000, 7_000_200)))
    spec = importlib.util.spec_from_file_location(module.stem, module)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    monkeypatch.setitem(sys.modules, module.stem, loaded)
    assert drawn() == before


def test_ids_depend_on_the_test_and_a_forked_process_has_others(tmp_path: Path) -> None:
    chance.begin("one")
    ids = [SYSTEM.new_uuid() for _ in range(3)]
    assert len({*ids}) == 3 and {made[14] for made in ids} == {"4"}
    chance.begin("another")
    assert SYSTEM.new_uuid() not in ids
    chance.begin("one")
    assert [SYSTEM.new_uuid() for _ in range(2)] == ids[:2]
    child = os.fork()
    if child == 0:
        (tmp_path / "id").write_text(SYSTEM.new_uuid())
        os._exit(0)
    os.waitpid(child, 0)
    assert len((tmp_path / "id").read_text()) == 36 and SYSTEM.new_uuid() == ids[2] != (tmp_path / "id").read_text()


PROPERTY = """
from pathlib import Path

from hypothesis import given, strategies as st
from tests.chance import seeds

drawn = []

@given(st.integers())
def test_it(number):
    drawn.append(number)

def test_others():
    Path(__file__).with_name("drawn").write_text(f"{[*seeds(1, 2)]} {drawn}")
"""


def fuzzed(file: Path, *arguments: str) -> tuple[str, str]:
    """Return the seed that a run of the profile `fuzz` reports, and what it draws."""
    options = ["-c", "setup.cfg", "-p", "tests.conftest", "-p", "no:cacheprovider", "--hypothesis-profile=fuzz"]
    command = [sys.executable, "-m", "pytest", *options, *arguments, str(file)]
    environment = {**os.environ, "LAKELSM_FUZZ_EXAMPLES": "9"}
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    reported = re.search(r"random search from seed (\d+); repeat a find with: make fuzz SEED=\1 EXAMPLES=9 ", ran.stdout)
    assert reported is not None, ran.stdout
    return reported[1], file.with_name("drawn").read_text()


def test_a_random_search_reports_its_seed_and_is_repeated_with_it(tmp_path: Path) -> None:
    file = tmp_path / "test_property.py"
    file.write_text(PROPERTY)
    seed, drawn = fuzzed(file, "-n", "1")
    assert drawn.startswith(f"[{seed}, {int(seed) + 1}] [")
    assert fuzzed(file, f"--hypothesis-seed={seed}") == (seed, drawn)
