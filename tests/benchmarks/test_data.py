"""Generated rows are pure functions of id and version, and their answers are known."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.config import BenchConfig
from benchmarks.data import SCHEMA, generate, rows
from benchmarks.workspace import check_count, check_sums, expected


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> BenchConfig:
    config = BenchConfig(workdir=str(tmp_path_factory.mktemp("bench")), rows=20_000, runs=3)
    generate(config)
    return config


def test_a_row_depends_on_its_id_and_version_only() -> None:
    ids = np.arange(1000, dtype=np.int64)
    table = rows(ids, np.zeros_like(ids))
    assert table.schema == SCHEMA
    assert table.take(pa.array(ids[::-1])).equals(rows(ids[::-1].copy(), np.zeros_like(ids)))
    assert not table.column("note").equals(rows(ids, np.ones_like(ids)).column("note"))


def test_one_row_in_ten_passes_the_predicate(config: BenchConfig) -> None:
    share = expected(config)["where"] / expected(config)["rows"]
    assert 0.09 < share < 0.11


def test_the_base_and_its_runs_give_the_merged_rows(config: BenchConfig) -> None:
    latest: dict[int, dict[str, object]] = {}
    for name in ("base", "run-0", "run-1", "run-2"):
        latest |= {row["id"]: row for row in pq.read_table(config.data(name)).to_pylist()}
    merged = pq.read_table(config.data("merged")).to_pylist()
    assert [latest[key] for key in sorted(latest)] == merged


def test_a_batch_is_one_per_cent_and_one_tenth_of_it_is_new(config: BenchConfig) -> None:
    ids = pq.read_table(config.data("run-0"), columns=["id"]).column("id")
    assert (len(ids), pc.count_distinct(ids).as_py()) == (200, 200)
    assert pc.sum(pc.greater_equal(ids, config.rows)).as_py() == 20


def test_wrong_answers_are_refused(config: BenchConfig) -> None:
    answer = expected(config)
    sums = (answer["rows"], answer["id"], answer["quantity"], Decimal(answer["amount"]))
    check_sums(config, *sums)
    with pytest.raises(AssertionError, match="wrong answer"):
        check_sums(config, sums[0] - 1, *sums[1:])
    with pytest.raises(AssertionError, match="wrong answer"):
        check_count(config, "where", answer["where"] + 1)
