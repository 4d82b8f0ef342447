"""docs/modes.md: the harness prints its table, its options exist, and its examples have the stated results."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.config import BenchConfig
from benchmarks.modes_page import ALL_FILES, CONTENDER, LIVE_FILES, MODES, page_table
from benchmarks.timing import Measurement
from lakelsm.options import OPTIONS, TableOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "modes.md").read_text(encoding="utf-8")
COPY_ON_WRITE = CONTENDER.format("copy-on-write")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_table_of_the_page_has_the_lines_and_columns_of_the_harness() -> None:
    printed = page_table(BenchConfig(workdir=""), []).splitlines()
    assert printed[0] in PAGE
    found = PAGE[PAGE.index(printed[0]) :].split("\n\n")[0].splitlines()
    assert [cells(line)[0] for line in found] == [cells(line)[0] for line in printed]
    assert {len(cells(line)) for line in found} == {len(MODES) + 1}


def test_cells_have_seconds_for_each_write_the_ratio_to_the_scan_or_mebibytes() -> None:
    stored = {LIVE_FILES: 3 << 20, ALL_FILES: 27 << 20}
    results = [
        Measurement("mode-write", COPY_ON_WRITE, [16.0], [24.0], stored=stored),
        Measurement("mode-read", "Spark parquet scan", [2.0], [3.0]),
        Measurement("mode-read", COPY_ON_WRITE, [2.1], [3.0], stored=stored),
    ]
    lines = page_table(BenchConfig(workdir="", runs=8), results).splitlines()[2:]
    assert [cells(line)[2] for line in lines] == ["2.00 s (3.00 s)", "2.10 s, 1.05 ×", "–", "3.0 MiB", "27.0 MiB"]
    assert {cells(line)[1] for line in lines} == {"–"}


def test_every_option_of_the_page_exists_and_sets_its_mode() -> None:
    named = set(re.findall(r"`([a-z]+(?:[.-][a-z0-9]+)+)`(?: = |[ ,.)])", PAGE)) - set(MODES)
    assert {"deletion-vectors.merge-on-read", "full-compaction.delta-commits", "write-only"} <= named
    assert named <= set(OPTIONS)
    for options in MODES.values():
        assert set(TableOptions.parse(options).explicit) == set(options) <= {*named, "full-compaction.delta-commits"}


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_examples_of_the_page_have_the_stated_results(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.version
    names: dict[str, Any] = {}
    checked = 0
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        source = block.replace("file:///tmp/modes", tmp_path.as_uri())
        for statement in ast.parse(source).body:
            text = ast.unparse(statement)
            said = re.search(r"# (\d+)", source.splitlines()[(statement.end_lineno or 1) - 1])
            if said is None:
                exec(text, names)
            else:
                checked += 1
                assert eval(text, names) == int(said.group(1)), text
    assert checked == 7
