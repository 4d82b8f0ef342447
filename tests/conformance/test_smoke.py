"""A small part of the conformance cases, if they are present; `make conformance` runs any of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.cases import load_cases
from tests.conformance.local_engine import LocalEngine
from tests.conformance.outcomes import Status
from tests.conformance.runner import run_cases
from tests.conformance.table_case import Engine, run_table_case

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance"

SMOKE = [
    "dedup-core-batch",
    "dedup-value-filter-stale",
    "dyn-write-read-delete",
    "npk-partitioned",
    "partition-pk-table",
    "rowkind-field",
    "schema-bucket-zero",
    "seq-core-field",
    "spark-update-map",
    "tr-rowkind-null",
]


def file_of_cases(name: str) -> Path:
    if not FOLDER.is_dir():
        pytest.skip(f"conformance cases {name}: {FOLDER} is not present")
    return FOLDER / name


def no_engine() -> Engine:
    raise AssertionError("a planning case requested a table")


@pytest.mark.parametrize("name", ["universal.jsonl", "interval.jsonl", "compact_task.jsonl"])
def test_every_planning_case_passes(name: str) -> None:
    outcomes = list(run_cases(load_cases([file_of_cases(name)]), no_engine))
    assert outcomes
    assert [outcome.text() for outcome in outcomes if outcome.status is not Status.PASSED] == []


def test_no_table_case_fails_without_a_jvm(tmp_path: Path) -> None:
    cases = load_cases([file_of_cases("tables.jsonl")])
    outcomes = list(run_cases(cases, lambda: LocalEngine(tmp_path)))
    assert [outcome.text() for outcome in outcomes if outcome.status is Status.FAILED] == []
    assert sum(outcome.status is Status.PASSED for outcome in outcomes) > 200


@pytest.fixture(scope="module")
def engine(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    from tests.conformance.spark_engine import SparkEngine

    return SparkEngine(spark, tmp_path_factory.mktemp("conformance") / "warehouse")


@pytest.mark.parametrize("case_id", SMOKE)
def test_a_table_case_passes(case_id: str, engine: Engine) -> None:
    [case] = load_cases([file_of_cases("tables.jsonl")], case_id=case_id)
    outcome = run_table_case(case, engine)
    assert outcome.status is Status.PASSED, outcome.text()
