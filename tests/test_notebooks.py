"""The notebooks run from top to bottom, and are stored without outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


def _code_cells(name: str) -> list[dict[str, Any]]:
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_stored_without_outputs(name: str) -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in _code_cells(name))


@pytest.mark.parametrize("name", NAMES)
def test_every_code_cell_runs_in_order(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert spark.version
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names: dict[str, Any] = {}
    for number, cell in enumerate(_code_cells(name), 1):
        exec(compile("".join(cell["source"]), f"{name} cell {number}", "exec"), names)
