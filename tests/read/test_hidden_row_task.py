"""The bitmaps of hidden rows are the rows that lose in the oracle's merge."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.options import MergeEngine
from lakelsm.read.hidden_row_task import CHUNK_BITS, HiddenRowTask, hidden_chunks
from lakelsm.schema.system_columns import HIDDEN_CHUNK, HIDDEN_FILE, HIDDEN_SIZE, HIDDEN_WORDS
from lakelsm.schema.table_schema import create_schema
from tests.examples import examples
from tests.merge.run_files import Row, reader_of, write_run
from tests.oracle import Change, Deduplicate

SCHEMA = create_schema("id INT, s INT, v STRING", ["id"], (), {"bucket": "1"})


def set_bits(words: list[int]) -> set[int]:
    return {64 * at + bit for at, word in enumerate(words) for bit in range(64) if (word % 2**64) >> bit & 1}


def hidden_rows(task: HiddenRowTask, units: list[MergeUnit]) -> dict[str, set[int]]:
    """Return hidden row indexes by file name, from the rows of all units."""
    found: dict[str, set[int]] = {}
    for batch in task(units):
        for row in batch.to_pylist():
            assert row[HIDDEN_WORDS][-1] != 0, "no zero words at the end"
            first = row[HIDDEN_CHUNK] << CHUNK_BITS
            found.setdefault(row[HIDDEN_FILE], set()).update(first + bit for bit in set_bits(row[HIDDEN_WORDS]))
    return found


@examples(60)
@given(
    st.lists(
        st.dictionaries(
            st.integers(0, 25),
            st.tuples(st.integers(0, 5), st.integers(0, 3), st.none() | st.integers(0, 2)),
            min_size=1,
        ),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.integers(0, 25), max_size=2, unique=True).map(sorted),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_the_hidden_rows_are_the_losing_rows_and_the_retractions(
    tmp_path_factory: pytest.TempPathFactory,
    runs: list[dict[int, tuple[int, int, int | None]]],
    cuts: list[int],
    by_field: bool,
    descending: bool,
    ignore_delete: bool,
    in_order: bool,
) -> None:
    """``in_order``: appends alone, so that the plan proves that keys decide what is hidden."""
    directory = tmp_path_factory.mktemp("hidden")
    written, changes = [], []
    for age, run in enumerate(runs):
        if in_order:
            run = {key: (10 * age + number, 0, s) for key, (number, _, s) in run.items()}
        rows: list[Row] = [(number, kind, {"id": key, "s": s}) for key, (number, kind, s) in sorted(run.items())]
        files = write_run(directory, SCHEMA, rows, files=2, group_rows=3)
        written.append(files)
        locations = [(file.path.rsplit("/", 1)[-1], at) for file in files for at in range(file.row_count)]
        for location, (number, kind, values) in zip(locations, rows, strict=True):
            sequence = (values["s"],) if by_field else ()
            changes.append(Change((values["id"],), number, kind, sequence, location))
    engine = Deduplicate(descending, ignore_delete)
    spec = MergeSpec(
        ("id",), sequence_columns=("s",) if by_field else (), sequence_descending=descending, ignore_delete=ignore_delete
    )
    bounds = [None, *((cut,) for cut in cuts), None]
    units = [MergeUnit(tuple(written), lower=low, upper=high) for low, high in pairwise(bounds)]
    proved = [replace(unit, has_only_adds=True, is_newest_last=True) for unit in units]
    shown = {change.value for change in engine.rows(changes)}
    wanted: dict[str, set[int]] = {}
    for change in changes:
        if change.value not in shown:
            name, at = change.value
            wanted.setdefault(name, set()).add(at)
    task = HiddenRowTask(reader_of(SCHEMA, ["id", "s"]), spec)
    assert hidden_rows(task, units) == wanted
    if in_order:
        assert hidden_rows(task, proved) == wanted


def test_a_file_without_hidden_rows_has_no_bitmap(tmp_path: Path) -> None:
    old = write_run(tmp_path, SCHEMA, [(0, 0, {"id": 1}), (1, 0, {"id": 5})])
    new = write_run(tmp_path, SCHEMA, [(2, 0, {"id": 1})])
    task = HiddenRowTask(reader_of(SCHEMA, ["id"]), MergeSpec(("id",)))
    assert hidden_rows(task, [MergeUnit((old, new))]) == {old[0].path.rsplit("/", 1)[-1]: {0}}
    assert hidden_rows(task, [MergeUnit((new,))]) == {}


def test_only_keys_are_read_if_the_plan_proves_that_they_decide(tmp_path: Path) -> None:
    """The sequence numbers and kinds of these rows contradict the plan, and are not read."""
    old = write_run(tmp_path, SCHEMA, [(9, 0, {"id": 1}), (9, 0, {"id": 2})])
    new = write_run(tmp_path, SCHEMA, [(0, 3, {"id": 1})])
    proved = MergeUnit((old, new), has_only_adds=True, is_newest_last=True)
    reader, by_field = reader_of(SCHEMA, ["id", "s"]), MergeSpec(("id",), sequence_columns=("s",))
    aggregation = MergeSpec(("id",), engine=MergeEngine.AGGREGATION)
    name, other = old[0].name, new[0].name
    assert hidden_rows(HiddenRowTask(reader, MergeSpec(("id",))), [proved]) == {name: {0}}
    combined = HiddenRowTask(reader, aggregation)
    assert hidden_rows(combined, [replace(proved, is_newest_last=False)]) == {name: {0}, other: {0}}
    for spec, unit in (
        (MergeSpec(("id",)), replace(proved, is_newest_last=False)),
        (MergeSpec(("id",)), replace(proved, has_only_adds=False)),
        (by_field, proved),
    ):
        assert hidden_rows(HiddenRowTask(reader, spec), [unit]) == {other: {0}}


@given(st.lists(st.dictionaries(st.integers(0, 2), st.sets(st.integers(0, 5 << CHUNK_BITS), min_size=1)), min_size=1))
def test_chunks_have_exactly_the_bits_of_their_positions(parts: list[dict[int, set[int]]]) -> None:
    held = [
        (np.array([number] * len(locations), dtype=np.int32), np.array(sorted(locations), dtype=np.int64))
        for part in parts
        for number, locations in part.items()
    ]
    if not held:
        return
    files = [RunFile(f"x/{name}", schema_id=0, row_count=1, file_size=ord(name)) for name in "abc"]
    rows = hidden_chunks(files, held).to_pylist()
    assert all(row[HIDDEN_SIZE] == ord(row[HIDDEN_FILE]) for row in rows)
    assert len({(row[HIDDEN_FILE], row[HIDDEN_CHUNK]) for row in rows}) == len(rows)
    found = {
        (row[HIDDEN_FILE], (row[HIDDEN_CHUNK] << CHUNK_BITS) + bit)
        for row in rows
        for bit in set_bits(row[HIDDEN_WORDS])
    }
    assert found == {("abc"[number], index) for part in parts for number, indexes in part.items() for index in indexes}
