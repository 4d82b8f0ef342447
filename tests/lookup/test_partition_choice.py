"""Which partitions `scan.partitions` chooses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.lookup.partition_choice import PartitionChoice, partition_condition
from lakelsm.predicate.evaluation import matching
from lakelsm.snapshots.table_store import TableStore

ROWS = [(2024, "b", 1), (2024, "a", 1), (2025, "a", 1), (2025, "c", 1), (2025, "b", 1), (2023, "z", 1)]


def table(folder: Path, rows: list[tuple[Any, ...]] = ROWS, types: str = "y INT, m STRING, k INT") -> Table:
    made = Catalog(str(folder)).create_table(
        "db.t", types, primary_key=["y", "m", "k"], partition_by=["y", "m"], options={"bucket": 1}
    )
    if rows:
        made.write(pa.table(dict(zip("ymk", zip(*rows)))).cast(made.to_arrow().schema))
    return made


def store_of(made: Table, text: str) -> TableStore:
    store = made._store()
    return store.with_schema(store.schema.with_options({**store.schema.options, "scan.partitions": text}))


def chosen(made: Table, text: str) -> list[str]:
    store = store_of(made, text)
    choice = PartitionChoice.of(store)
    assert choice is not None
    return [store.partition_label(each) for each in choice.partitions(store, store.snapshots.latest())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max_pt()", ["y=2025/m=c"]),
        (" MAX_PT() ", ["y=2025/m=c"]),
        ("max_two_pt()", ["y=2025/m=c", "y=2025/m=b"]),
        ("y=max_pt()", ["y=2025/m=c", "y=2025/m=b", "y=2025/m=a"]),
        ("M=max_pt(), y=Max_Pt()", ["y=2025/m=c"]),
        ("y=2024,m=a", ["y=2024/m=a"]),
        ("y=2024,m=a;y=1999,m=q; m=a , y=2024;", ["y=2024/m=a", "y=1999/m=q"]),
    ],
)
def test_named_partitions_and_the_greatest_ones(text: str, expected: list[str], tmp_path: Path) -> None:
    assert chosen(table(tmp_path), text) == expected


def test_an_empty_table_has_no_greatest_partition(tmp_path: Path) -> None:
    made = table(tmp_path, [])
    assert chosen(made, "max_pt()") == chosen(made, "y=max_pt()") == []


def test_partitions_without_files_are_not_the_greatest(tmp_path: Path) -> None:
    made = table(tmp_path)
    made.overwrite(made.to_arrow().slice(0, 0), partition={"y": 2025})
    assert chosen(made, "max_pt()") == ["y=2024/m=b"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "'' is no partition"),
        ("y", "'y' is no partition"),
        ("max_pt", "'max_pt' is no partition"),
        ("y=2024", "it must name all partition columns, and lacks m"),
        ("y=2024,y=2025,m=a", "has 'y' twice"),
        ("y=x,m=a", "partition value y is 'x'"),
        ("k=1,m=a", "'k' is no partition column; the table has y, m"),
        ("m=max_pt()", "it must name the first partition columns, in y, m"),
        ("y=2024,m=max_pt()", "stands for each column that is named"),
        ("y=max_pt();y=max_pt()", "stands for each column that is named"),
        ("y=max_two_pt()", "stands for each column that is named"),
    ],
)
def test_others_are_refused_by_name(text: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(f"option 'scan.partitions' cannot be '{text}'") + ".*" + fault):
        PartitionChoice.of(store_of(table(tmp_path, []), text))


def test_a_table_without_partitions_has_none_to_choose(tmp_path: Path) -> None:
    made = Catalog(str(tmp_path)).create_table("db.t", "k INT", primary_key=["k"], options={"bucket": 1})
    assert PartitionChoice.of(made._store()) is None
    with pytest.raises(InvalidInputError, match=r"table db.t has no partitions; leave it out"):
        PartitionChoice.of(store_of(made, "max_pt()"))


def test_the_condition_of_partitions_takes_their_rows_alone(tmp_path: Path) -> None:
    made = table(tmp_path)
    store = store_of(made, "y=2024,m=a;y=2025,m=c")
    choice = PartitionChoice.of(store)
    assert choice is not None
    rows = made.to_arrow()
    kept = rows.filter(matching(partition_condition(store, choice.partitions(store, None)), rows))
    assert sorted(zip(*kept.select(["y", "m"]).to_pydict().values())) == [(2024, "a"), (2025, "c")]
    assert len(rows.filter(matching(partition_condition(store, ()), rows))) == 0


def test_partitions_of_floats_cannot_be_chosen(tmp_path: Path) -> None:
    made = table(tmp_path, [], "y DOUBLE, m STRING, k INT")
    store = store_of(made, "y=1.0,m=a")
    choice = PartitionChoice.of(store)
    assert choice is not None
    with pytest.raises(UnsupportedFeatureError, match=r"lookups in chosen partitions of DOUBLE NOT NULL \('y'\)"):
        partition_condition(store, choice.partitions(store, None))
