"""A scan decodes few row groups and columns, and returns no hidden row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm import Table
from lakelsm.local.arrow_scan import ArrowScan
from lakelsm.predicate.evaluation import matching
from lakelsm.predicate.predicate import Predicate
from tests.compact.local_table import LocalTable
from tests.examples import examples
from tests.merge.run_files import decoded_groups

ROWS = 3000


def grouped(folder: Path, **options: str) -> LocalTable:
    """Create a table whose files have many row groups; ``n`` ascends with the key, ``v`` does not."""
    options = {"file__block_size": "16kb", "parquet__enable__dictionary": "false", **options}
    table = LocalTable(folder / "t", "id INT NOT NULL, n BIGINT, v STRING, w STRING", ("id",), **options)
    table.write(*((at, at * 10, f"v{at * 7919 % ROWS}", "x" * 20) for at in range(ROWS)))
    return table


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    return decoded_groups(monkeypatch)


def test_row_groups_that_statistics_exclude_are_skipped(tmp_path: Path, decoded: list[tuple[int, int]]) -> None:
    table = Table.for_path(str(grouped(tmp_path).root))
    assert len(table.to_arrow()) == ROWS
    groups = len(decoded)
    assert groups > 4
    decoded.clear()
    assert table.to_arrow("n = 15000", ["id"]).column("id").to_pylist() == [1500]
    assert len(decoded) == 1
    decoded.clear()
    assert len(table.to_arrow("n IS NULL")) == 0
    assert decoded == []


def test_a_condition_that_statistics_prove_is_not_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table.for_path(str(grouped(tmp_path).root))
    evaluated: list[int] = []

    def counted(predicate: Predicate, rows: pa.Table) -> Any:
        evaluated.append(len(rows))
        return matching(predicate, rows)

    monkeypatch.setattr("lakelsm.local.scan_task.matching", counted)
    assert table.to_arrow("n >= 15", ["id"]).column("id").to_pylist() == list(range(2, ROWS))
    assert len(evaluated) == 1 and evaluated[0] < ROWS // 4


def test_after_a_group_without_a_match_the_conditions_columns_are_read_first(
    tmp_path: Path, decoded: list[tuple[int, int]]
) -> None:
    table = Table.for_path(str(grouped(tmp_path).root))
    assert len(table.to_arrow("v LIKE '%v7'", ["id", "n", "w"])) == 1
    assert [columns for _, columns in decoded].count(4) <= 3
    assert [columns for _, columns in decoded].count(1) >= 3


@examples(40)
@given(
    st.lists(st.dictionaries(st.integers(0, 40), st.none() | st.integers(0, 9), min_size=1), min_size=1, max_size=5),
    st.sampled_from(["deduplicate", "first-row", "partial-update"]),
    st.booleans(),
    st.sampled_from([None, "n > 4", "n IS NULL", "id BETWEEN 5 AND 20 AND n != 3", "n IN (1, 2, 3) OR id < 3"]),
)
def test_rows_equal_a_models_for_any_compactions(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[dict[int, int | None]],
    engine: str,
    compacts: bool,
    where: str | None,
) -> None:
    table = LocalTable(
        tmp_path_factory.mktemp("scan") / "t",
        "id INT NOT NULL, n INT",
        ("id",),
        merge_engine=engine,
        source__split__target_size="1b",
        target_file_size="1b",
        file__block_size="1b",
    )
    model: dict[int, int | None] = {}
    for at, batch in enumerate(batches):
        table.write(*batch.items())
        for key, value in batch.items():
            if engine == "deduplicate" or key not in model or (engine == "partial-update" and value is not None):
                model[key] = value
        if compacts and at == len(batches) // 2:
            table.compact()
    found = Table.for_path(str(table.root)).to_arrow(where, ordered=True, fresh=True)
    again = Table.for_path(str(table.root)).to_arrow(where, fresh=True)
    checks = {
        None: lambda key, value: True,
        "n > 4": lambda key, value: value is not None and value > 4,
        "n IS NULL": lambda key, value: value is None,
        "id BETWEEN 5 AND 20 AND n != 3": lambda key, value: 5 <= key <= 20 and value not in (None, 3),
        "n IN (1, 2, 3) OR id < 3": lambda key, value: value in (1, 2, 3) or key < 3,
    }
    wanted = [{"id": key, "n": value} for key, value in sorted(model.items()) if checks[where](key, value)]
    assert found.to_pylist() == wanted
    assert sorted(again.to_pylist(), key=lambda row: row["id"]) == wanted


def test_nested_columns_and_added_ones_are_read(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "id INT NOT NULL, a ARRAY<INT>, r ROW<x INT, t TIMESTAMP(9)>", ("id",))
    table.write_columns(
        pa.table(
            {
                "id": pa.array([1, 2], pa.int32()),
                "a": pa.array([[1, None], None], pa.list_(pa.int32())),
                "r": pa.array([None, None], pa.struct([("x", pa.int32()), ("t", pa.binary(10))])),
            }
        )
    )
    table.write((2, [3], None))
    found = Table.for_path(str(table.root)).to_arrow("a IS NOT NULL", ordered=True)
    assert found.to_pylist() == [{"id": 1, "a": [1, None], "r": None}, {"id": 2, "a": [3], "r": None}]
    assert found.schema.field("r").type == pa.struct([("x", pa.int32()), ("t", pa.timestamp("ns"))])


def test_the_size_of_batches_depends_on_the_memory_of_a_task(tmp_path: Path) -> None:
    table = grouped(tmp_path, file__block_size="64mb")
    scan = ArrowScan.of(table.store, table.latest, None, None)
    ample = [len(batch) for batch in scan._task(scan.schema)(scan.plan.raw_files[0])]
    tight = [batch.nbytes for batch in scan._task(scan.schema, 1 << 18)(scan.plan.raw_files[0])]
    assert sum(ample) == ROWS
    assert len(tight) > len(ample)
    assert max(tight) < 1 << 16
