"""An overwrite writes a fully compacted bucket, as Java does: ``overwrite-upgrade``."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError
from lakelsm.format.manifest import ManifestEntry
from lakelsm.plan.overwrite_plan import checked_partition, upgraded_for_overwrite
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, add, file
from tests.compact.local_table import LocalTable
from tests.option_keys import option_keys

APART = [add(file("c", keys=(7, 9))), add(file("a", keys=(1, 2))), add(file("b", keys=(3, 6)))]
TOUCHING = [add(file("d", keys=(1, 3)), bucket=1), add(file("e", keys=(3, 4)), bucket=1)]
OTHER_PARTITION = [add(file("f", keys=(1, 9)), dt="b"), add(file("g", keys=(1, 9)), dt=None)]


def levels(root: Path, entries: list[ManifestEntry], **options: str) -> dict[str, int]:
    given = option_keys(options)
    store = TableStore.open(str(CommitTable(root / "-".join(given), given).root))
    upgraded = upgraded_for_overwrite(store, entries)
    assert [entry.file.file_name for entry in upgraded] == [entry.file.file_name for entry in entries]
    return {entry.file.file_name: entry.file.level for entry in upgraded}


def test_files_are_written_to_the_top_level_in_each_bucket_where_none_overlap(tmp_path: Path) -> None:
    entries = [*APART, *TOUCHING, *OTHER_PARTITION]
    assert levels(tmp_path, entries) == {"c": 5, "a": 5, "b": 5, "d": 0, "e": 0, "f": 5, "g": 5}
    assert levels(tmp_path, []) == {}


def test_the_top_level_follows_the_options_and_a_file_with_retractions_is_included(tmp_path: Path) -> None:
    retractions = add(file("r", keys=(1, 2)))
    retractions.file.delete_row_count = 2
    assert levels(tmp_path, [retractions], num_levels="3") == {"r": 2}


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({"overwrite_upgrade": "false"}, 0),
        ({"merge_engine": "first-row"}, 0),
        ({"merge_engine": "first-row", "write_only": "true"}, 5),
        ({"changelog_producer": "lookup"}, 0),
        ({"changelog_producer": "lookup", "write_only": "true"}, 5),
        ({"changelog_producer": "full-compaction"}, 5),
        ({"write_only": "true", "overwrite_upgrade": "false"}, 0),
    ],
)
def test_a_writer_that_looks_rows_up_itself_leaves_the_files_to_its_compaction(
    tmp_path: Path, options: dict[str, str], level: int
) -> None:
    assert set(levels(tmp_path, APART, **options).values()) == {level}


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_a_compaction_after_an_overwrite_of_a_write_only_table_records_no_changes(tmp_path: Path, producer: str) -> None:
    table = LocalTable(tmp_path / "t", changelog_producer=producer, write_only="true")
    table.write((1, "a"), (2, "b"))
    table.compact()
    table.overwrite((2, "c"), (3, "d"))
    assert table.levels() == [5] and table.compact().status == "nothing"
    table.write((3, "e"))
    assert table.compact().changelog_rows == 2
    assert table.rows() == [(2, "c"), (3, "e")]


DAY = datetime.date(2025, 1, 1)
NOON = datetime.datetime(2025, 1, 1, 12)
UTC = datetime.timezone.utc
COLUMNS = "d DATE, n INT, b BOOLEAN, s STRING, t TIMESTAMP(6), l TIMESTAMP_LTZ(6), p DECIMAL(5, 2), f FLOAT"
NAMES = ["d", "n", "b", "s", "t", "l", "p", "f"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TableStore:
    warehouse: Path = tmp_path_factory.mktemp("partitions")
    Catalog(str(warehouse)).create_table(
        "db.t", f"{COLUMNS}, k INT", primary_key=[*NAMES, "k"], partition_by=NAMES, options={"bucket": 1}
    )
    return TableStore.open(str(warehouse / "db.db" / "t"))


@pytest.mark.parametrize(
    ("column", "value", "taken"),
    [
        ("d", DAY, DAY),
        ("d", "2025-01-01", DAY),
        ("d", datetime.date.min, datetime.date.min),
        ("n", 1.0, 1),
        ("n", np.int64(1), 1),
        ("n", "1", 1),
        ("b", "TRUE", True),
        ("t", NOON, NOON),
        ("t", pd.Timestamp(NOON), NOON),
        ("l", NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC)),
        ("p", Decimal("1.5"), Decimal("1.50")),
        ("p", 1, Decimal("1.00")),
        ("f", 0.5, 0.5),
    ],
)
def test_values_of_the_columns_type_and_their_text_are_accepted(
    store: TableStore, column: str, value: Any, taken: object
) -> None:
    assert checked_partition(store, {column: value}) == {column: taken}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("d", NOON),
        ("d", pd.NaT),
        ("d", 20089),
        ("d", 1.5),
        ("d", Decimal(1)),
        ("d", "2025-13-01"),
        ("n", 1.5),
        ("n", True),
        ("n", 2**31),
        ("n", "1.5"),
        ("b", 1),
        ("s", b"s"),
        ("s", 5),
        ("s", "\ud800"),
        ("t", NOON.replace(tzinfo=UTC)),
        ("t", 5),
        ("t", DAY),
        ("t", pd.Timestamp.max),
        ("l", NOON),
        ("p", "1.555"),
        ("p", 1.5),
        ("f", "x"),
        ("n", None),
        ("n", [1]),
    ],
)
def test_values_that_do_not_fit_the_column_are_refused_and_named(store: TableStore, column: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=rf"partition value {column}: expected a value of "):
        checked_partition(store, {column: value})


@pytest.mark.parametrize("partition", ["d=2025-01-01", [("d", DAY)], {5: DAY}, {"\0": 1}, 5, {"k": 1}, {"d": 1, "D": 1}])
def test_other_values_than_a_mapping_of_partition_columns_are_refused(store: TableStore, partition: Any) -> None:
    with pytest.raises(InvalidInputError, match="partition"):
        checked_partition(store, partition)
