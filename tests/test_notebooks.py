"""The quickstart notebook runs from top to bottom, and is stored without outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "quickstart.ipynb"


def _code_cells() -> list[dict[str, Any]]:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_the_notebook_is_stored_without_outputs() -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in _code_cells())


def test_every_code_cell_runs_in_order(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.version
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names: dict[str, Any] = {}
    for number, cell in enumerate(_code_cells(), 1):
        exec(compile("".join(cell["source"]), f"quickstart cell {number}", "exec"), names)
