"""File indexes exclude data files from a read, but never one with a wanted row."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.plan.file_index_pruning import FileIndexPruning
from lakelsm.plan.read_plan import plan_read
from lakelsm.predicate.parser import parse_where
from lakelsm.schema_changes import AddColumn, RenameColumn, SetOption, UpdateColumnType
from lakelsm.types import parse_type
from tests.compact.local_table import LocalTable
from tests.examples import examples

COLUMNS = "id INT NOT NULL, v STRING, n INT, d DOUBLE"
BLOOM = {"file-index.bloom-filter.columns": "id,v,d", "file-index.bloom-filter.v.items": "20"}
BITMAP = {"file-index.bitmap.columns": "v,n"}
#: Values are known only from indexes.
PLAIN = {"metadata.stats-mode": "none", "write-only": "true"}
BESIDE, EMBEDDED = {"file-index.in-manifest-threshold": "0 b"}, {"file-index.in-manifest-threshold": "2 mb"}


def _table(root: Path, **more: str) -> LocalTable:
    from lakelsm.schema.table_schema import create_schema

    return LocalTable.of(root, create_schema(COLUMNS, ["id"], (), {"bucket": "1", **PLAIN, **more}, None, 0))


def _scanned(table: LocalTable, where: str) -> int:
    predicate = parse_where(where, table.store.schema.fields)
    return plan_read(table.store, table.store.snapshots.latest(), predicate).files_scanned


@pytest.fixture(params=[BESIDE, EMBEDDED], ids=["beside", "embedded"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LocalTable:
    """Two level-0 files that overlap no other."""
    made = _table(tmp_path, **BLOOM, **BITMAP, **request.param)
    made.write((1, "a", 1, 0.0), (3, "b", None, 1.5), (5, None, 1, math.nan))
    made.write((10, "c", 2, -0.0), (12, "d", 2, None))
    return made


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("v = 'a'", 1),
        ("v = 'zz'", 0),
        ("v IN ('a', 'd')", 2),
        ("v IN ('x', 'y', 'd')", 1),
        ("id = 4", 0),
        ("id = 3", 1),
        ("id = 4 AND v = 'a'", 0),
        ("id = 3 OR v = 'd'", 2),
        ("v = 'a' OR d > 100", 2),
        ("v = 'a' AND d > 100", 1),
        ("n IS NULL", 1),
        ("v IS NULL", 1),
        ("n != 2", 1),
        ("n NOT IN (1, 2)", 0),
        ("NOT n = 1", 1),
        ("n IS NOT NULL AND v IS NULL", 1),
        ("n = 2 AND v IN ('a', 'b')", 0),
        ("v != 'c'", 2),
        ("d = 0", 2),
        ("d = 1.5", 1),
        ("v LIKE 'a%'", 2),
        ("n > 1", 2),
        ("v > 'a' AND v = 'c'", 1),
    ],
)
def test_files_without_a_wanted_row_are_excluded(table: LocalTable, where: str, files: int) -> None:
    assert _scanned(table, where) == files


def test_an_upgraded_file_keeps_its_index_and_a_compaction_writes_new_ones(table: LocalTable) -> None:
    before = {entry.file.file_name: (entry.file.extra_files, entry.file.embedded_index) for entry in table.live()}
    table.alter(SetOption("target-file-size", "1 b"))
    table.compact(full=True)
    after = {entry.file.file_name: (entry.file.extra_files, entry.file.embedded_index) for entry in table.live()}
    assert set(table.levels()) == {5}
    assert after == before
    assert _scanned(table, "v = 'zz'") == 0
    table.write((3, "q", 7, None), (10, "q", 7, None))
    table.alter(SetOption("target-file-size", "128 mb"))
    table.compact(full=True)
    (entry,) = table.live()
    assert entry.file.embedded_index or entry.file.extra_files == (entry.file.file_name + ".index",)
    assert [_scanned(table, where) for where in ("v = 'b'", "v = 'q'", "n = 2 AND v = 'q'")] == [0, 1, 0]


def test_the_newer_version_of_a_row_is_kept_although_an_index_alone_would_exclude_it(tmp_path: Path) -> None:
    table = _table(tmp_path, **BITMAP)
    table.write((1, "old", 1, None))
    table.write((1, "new", 2, None))
    assert _scanned(table, "v = 'old'") == 2, "without the newer file the old row would come back"
    assert _scanned(table, "v = 'new'") == 1
    assert _scanned(table, "v = 'none'") == 0


def test_an_index_on_a_key_column_excludes_each_file_alone(tmp_path: Path) -> None:
    table = _table(tmp_path, **BLOOM)
    table.write((1, "x", 1, None), (9, "x", 1, None))
    table.write((2, "x", 2, None), (8, "x", 1, None))
    assert [_scanned(table, where) for where in ("id = 9", "id = 8", "id = 5", "id IN (9, 8)")] == [1, 1, 0, 2]


def test_no_index_is_read_if_the_option_disables_it(table: LocalTable) -> None:
    table.alter(SetOption("file-index.read.enabled", "false"))
    for path in table.root.rglob("*.index"):
        path.unlink()
    assert _scanned(table, "v = 'zz'") == 2


def test_an_index_is_not_used_for_a_column_that_was_added_later_or_changed_its_type(table: LocalTable) -> None:
    table.alter(
        RenameColumn(("v",), "w"), UpdateColumnType(("n",), parse_type("BIGINT")), AddColumn(("v",), parse_type("STRING"))
    )
    assert [_scanned(table, where) for where in ("w = 'zz'", "w = 'a'", "v = 'a'", "n = 77")] == [0, 1, 0, 2]


def test_only_indexes_of_files_that_statistics_keep_are_read(tmp_path: Path) -> None:
    table = _table(tmp_path, **BLOOM, **BESIDE, **{"metadata.stats-mode": "full"})
    table.write((1, "a", 1, None))
    table.write((10, "c", 2, None))
    for entry in table.live():
        Path(f"{table.path_of(entry)}.index").unlink()
    assert _scanned(table, "v = 'b' AND n > 5") == 0
    assert _scanned(table, "n = 1") == 1
    with pytest.raises(CorruptTableError, match=r"^File index .*-0\.parquet\.index of data file .* does not exist"):
        _scanned(table, "v = 'a'")


def test_an_index_of_another_file_is_refused(tmp_path: Path) -> None:
    table = _table(tmp_path, **BLOOM, **BESIDE)
    table.write((1, "a", 1, None))
    table.write((10, "c", 2, None))
    first, second = (Path(f"{table.path_of(entry)}.index") for entry in table.live())
    shutil.copy(first, second)
    with pytest.raises(CorruptTableError, match=f"^File index {second} of data file .* belongs to another data file"):
        _scanned(table, "v = 'a'")


def test_a_link_out_of_the_table_is_not_followed(tmp_path: Path) -> None:
    table = _table(tmp_path / "table", **BLOOM, **BESIDE)
    table.write((1, "a", 1, None))
    (stored,) = table.root.rglob("*.index")
    stored.rename(tmp_path / "outside")
    stored.symlink_to(tmp_path / "outside")
    with pytest.raises(CorruptTableError, match="outside"):
        _scanned(table, "v = 'a'")


_ROWS = st.tuples(
    st.none() | st.sampled_from("abc"),
    st.none() | st.integers(0, 3),
    st.none() | st.sampled_from([0.0, -0.0, 1.5, math.nan]),
)
_Test = Callable[[Any, Any, Any], Any]
_LEAVES: list[tuple[str, _Test]] = [
    ("v = 'a'", lambda v, n, d: v is not None and v == "a"),
    ("v != 'a'", lambda v, n, d: v is not None and v != "a"),
    ("v IN ('b', 'z')", lambda v, n, d: v in ("b", "z")),
    ("n NOT IN (0, 1)", lambda v, n, d: n is not None and n not in (0, 1)),
    ("n = 3", lambda v, n, d: n == 3),
    ("n IS NULL", lambda v, n, d: n is None),
    ("v IS NOT NULL", lambda v, n, d: v is not None),
    ("d = 0.0", lambda v, n, d: d == 0.0),
    ("d != 0.0", lambda v, n, d: d is not None and d != 0.0),
    ("n > 1", lambda v, n, d: n is not None and n > 1),
]


@examples(30)
@given(
    files=st.lists(st.lists(_ROWS, min_size=1, max_size=5), min_size=1, max_size=4),
    leaves=st.lists(st.integers(0, len(_LEAVES) - 1), min_size=1, max_size=3),
    both=st.booleans(),
)
def test_a_file_with_a_wanted_row_is_never_excluded(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[tuple[Any, ...]]], leaves: list[int], both: bool
) -> None:
    options = {**BLOOM, "file-index.bitmap.columns": "v,n,d", "lakelsm.durable-files": "false"}
    table = _table(tmp_path_factory.mktemp("t") / "t", **options)
    for number, rows in enumerate(files):
        table.write(*((100 * number + at, *row) for at, row in enumerate(rows)))
    chosen = [_LEAVES[at] for at in leaves]
    where = (" AND " if both else " OR ").join(text for text, _ in chosen)
    holds = all if both else any
    entries = table.live()
    pruning = FileIndexPruning(table.store, parse_where(where, table.store.schema.fields))
    _, kept = pruning.keep(entries, range(len(entries)), [True] * len(entries), [True] * len(entries))
    wanted = [any(holds(test(*row) for _, test in chosen) for row in rows) for rows in files]
    assert [keep or not want for keep, want in zip(kept, wanted)] == [True] * len(files)
