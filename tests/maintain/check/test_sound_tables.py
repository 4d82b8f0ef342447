"""A check has no findings in sound tables of any writer."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm import Table
from lakelsm.maintain.check.audit_plan import CheckedData
from lakelsm.maintain.check.table_check import CheckScope, check_table
from lakelsm.results import CheckResult
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.schema_changes import AddColumn
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import parse_type
from tests.compact.local_table import LocalTable
from tests.compact.vector_history import ENGINES, VectorHistory
from tests.damage.samples import SAMPLES, build
from tests.examples import examples
from tests.golden_tables import GoldenTable
from tests.interop.test_java_golden import SUPPORTED
from tests.local.test_every_type import COLUMNS, LOCAL, row

KEYS = (
    "a DOUBLE NOT NULL, b TIMESTAMP(9) NOT NULL, c DECIMAL(20, 3) NOT NULL, s STRING NOT NULL, y BYTES NOT NULL, "
    "bo BOOLEAN NOT NULL"
)


def found_in(root: Path, **scope: Any) -> CheckResult:
    return check_table(TableStore.open(str(root)), CheckScope(data=CheckedData.FULL, **scope), LocalRunner())


@pytest.mark.parametrize(("name", "version"), SUPPORTED)
def test_tables_of_java_have_no_findings(golden: Callable[..., GoldenTable], name: str, version: str) -> None:
    result = found_in(golden(name, version).path)
    assert not result.findings and result.files, result.as_text()


@pytest.mark.parametrize("name", SAMPLES)
def test_tables_with_every_kind_of_file_have_no_findings(tmp_path: Path, name: str) -> None:
    build(tmp_path / "t", SAMPLES[name])
    result = found_in(tmp_path / "t")
    assert not result.findings and result.files, result.as_text()


def test_columns_and_keys_of_every_type_have_no_findings(tmp_path: Path) -> None:
    values = LocalTable(tmp_path / "values", COLUMNS, ("k",), changelog_producer="lookup")
    values.write(row(1, 1.5), row(2, float("nan")), (3, *[None] * 22))
    values.compact(full=False)
    values.write(row(4, -0.0))
    keys = LocalTable(tmp_path / "keys", f"{KEYS}, v INT", ("a", "b", "c", "s", "y", "bo"), bucket="3")
    numbers = [0.0, 1.5, float("nan"), -3.0, float("inf")] * 12
    rows = [
        (x, LOCAL.replace(microsecond=at), Decimal(at) / 8, "x" * at + "é", b"\xff" * (at % 40), bool(at % 2), at)
        for at, x in enumerate(numbers)
    ]
    keys.write(*rows)
    keys.write(*rows[:30])
    keys.compact(full=True)
    keys.write(*rows[:5])
    for table in (values, keys):
        result = found_in(table.root)
        assert not result.findings, result.as_text()


@examples(3)
@given(seed=st.integers(0, 2**32), engine=st.sampled_from(sorted(ENGINES)))
def test_histories_with_deletion_vectors_have_no_findings(
    tmp_path_factory: pytest.TempPathFactory, seed: int, engine: str
) -> None:
    history = VectorHistory(seed, engine, tmp_path_factory.mktemp("history") / "t")
    history.run(4)
    result = found_in(history.table.root)
    assert not result.findings, result.as_text()


OPTIONS = st.fixed_dictionaries(
    {
        "bucket": st.sampled_from(["1", "2", "-1"]),
        "merge_engine": st.sampled_from(["deduplicate", "partial-update", "first-row"]),
        "changelog_producer": st.sampled_from(["none", "lookup"]),
        "num_sorted_run__compaction_trigger": st.sampled_from(["2", "4"]),
        "target_file_size": st.sampled_from(["1 b", "128 mb"]),
        "dynamic_bucket__target_row_num": st.just("5"),
        "metadata__stats_mode": st.sampled_from(["full", "truncate(2)", "counts"]),
        "file_index__bitmap__columns": st.just("v"),
    }
)
ACTIONS = st.lists(st.sampled_from(["write", "write", "write", "compact", "full", "overwrite", "alter"]), max_size=9)


@examples(12)
@given(options=OPTIONS, actions=ACTIONS, seed=st.integers(0, 2**32))
def test_histories_of_writes_and_compactions_have_no_findings(
    tmp_path_factory: pytest.TempPathFactory, options: dict[str, str], actions: list[str], seed: int
) -> None:
    chance = Random(seed)
    columns = "dt STRING NOT NULL, id INT NOT NULL, v STRING"
    table = LocalTable(tmp_path_factory.mktemp("history") / "t", columns, ("dt", "id"), ("dt",), **options)

    def rows() -> list[tuple[object, ...]]:
        first, more = chance.randrange(40), (None,) * (len(table.store.schema.fields) - 3)
        ids = range(first, first + chance.randrange(1, 20))
        return [(chance.choice(["a", "b"]), at, chance.choice([None, "x", f"text {at}"]), *more) for at in ids]

    for number, action in enumerate(["write", *actions]):
        if action == "write":
            table.write(*rows())
        elif action == "overwrite":
            table.overwrite(*rows(), partitions=lambda _: True)
        elif action == "alter":
            table.alter(AddColumn(f"x{number}", parse_type("INT")))
        else:
            table.compact(full=action == "full")
    result = found_in(table.root)
    assert not result.findings and result.files_read >= result.files, result.as_text()


def test_expiry_with_tags_and_long_lived_changelogs_leaves_no_findings(tmp_path: Path) -> None:
    kept = {"changelog__num_retained__min": "50", "changelog__num_retained__max": "50"}
    table = LocalTable(tmp_path / "t", changelog_producer="input", **kept)
    for number in range(6):
        table.write(*((key, f"v{number}") for key in range(9)))
        if number == 2:
            Table.for_path(str(table.root)).tags.create("kept")
    table.compact(full=True)
    table.write((1, "last"))
    expired = Table.for_path(str(table.root)).maintenance.expire_snapshots(retain_last=2)
    assert expired.snapshots and expired.changelogs_kept
    result = found_in(table.root)
    assert not result.findings and (result.snapshots, result.tags) == (2, 1), result.as_text()
