"""A table on files has the same rows before a compaction, after a minor one and after a full one, for every engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError
from tests.conformance.table_case import KindedRow
from tests.examples import examples
from tests.merge.engine_oracle import Record, Refused, Table
from tests.merge.engine_tables import (
    Case,
    aggregations,
    deduplicates,
    first_rows,
    partial_updates,
    records,
    rows,
    same_value,
    schema_of,
    stable_tables,
)
from tests.oracle import KINDS
from tests.read.file_engine import FileTable

_NAMES = {code: name for name, code in KINDS.items()}

Batch = list[tuple[int, Record]]


#: Rows that are not written again, so that the oldest run is much larger than the others.
PADDING = range(1000, 1400)


class History:
    """A table on files, and the records of its runs according to the oracle."""

    def __init__(self, table: Table, root: Path) -> None:
        automatic = "false" if table.engine == "first-row" else "true"
        more = {"num-sorted-run.compaction-trigger": "2", "write-only": automatic, "file.compression": "none"}
        self.table = table
        self.files = FileTable.of(root, schema_of(table, more))
        self._names = self.files.store.schema.field_names
        self._runs: Batch = []

    def write(self, batch: Batch) -> None:
        """Raises Refused if the oracle refuses the merge of the batch."""
        kept = [(key, record) for key, record in batch if not (self.table.ignore_delete and record.retracts)]
        numbered = [(key, Record(at, record.kind, record.row)) for at, (key, record) in enumerate(kept)]
        merged = Case(self.table, numbered).expected()
        rows = [(record, {"id": key, **record.row}) for key, record in batch]
        self.files.write(
            [KindedRow(_NAMES[record.kind], tuple(row[name] for name in self._names)) for record, row in rows], {}
        )
        self._runs += [(key, Record(len(self._runs), record.kind, record.row)) for key, record in merged.items()]

    def pad(self, row: Mapping[str, Any]) -> None:
        self.write([(key, Record(0, 0, row)) for key in PADDING])

    def compact(self, full: bool) -> None:
        self.files.compact(full=full)
        if full:
            kept = {key: record for key, record in self._merged().items() if not record.retracts}
            self._runs = [(key, Record(at, 0, record.row)) for at, (key, record) in enumerate(kept.items())]

    def check(self) -> None:
        """Check that the rows of the table equal those of the oracle, which does not know minor compactions."""
        expected = {key: record.row for key, record in self._merged().items() if not record.retracts}
        found = [dict(zip(self._names, row)) for row in self.files.read(None, None)]
        assert sorted(self._form(row["id"], row) for row in found) == sorted(
            self._form(key, row) for key, row in expected.items()
        )

    def levels(self) -> set[int]:
        return set(self.files.levels())

    def _merged(self) -> dict[int, Record]:
        return Case(self.table, self._runs).expected()

    def _form(self, key: int, row: Mapping[str, Any]) -> tuple[int, str]:
        return key, repr([same_value(row[column.name], column) for column in self.table.columns])


@pytest.mark.parametrize(
    "tables",
    [deduplicates(), partial_updates(), aggregations(), first_rows()],
    ids=["deduplicate", "partial-update", "aggregation", "first-row"],
)
@examples(12)
@given(st.data())
def test_a_full_compaction_changes_no_row_for_any_engine_and_options(
    tmp_path_factory: pytest.TempPathFactory, tables: st.SearchStrategy[Table], data: st.DataObject
) -> None:
    """All options and all kinds of rows. Only `first-row` compacts each write, because its reads leave level 0 out."""
    history = History(data.draw(tables), tmp_path_factory.mktemp("history") / "t")
    kinds = st.sampled_from([0, 0, 0, 2, 1, 3])
    try:
        for _ in range(data.draw(st.integers(2, 4))):
            history.write(data.draw(records(history.table, kinds, st.just(0))))
        history.check()
    except (Refused, InvalidInputError) as error:
        # This test does not check which rows are refused.
        event(type(error).__name__)
        return
    top = history.files.store.options.num_levels - 1
    for _ in range(2):
        history.compact(full=True)
        assert history.levels() <= {top}
        history.check()


@examples(15)
@given(st.data())
def test_a_minor_compaction_changes_no_row_if_the_order_of_merges_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """`stable_tables` lists these tables and kinds of rows, and the reasons for the others."""
    table, kinds = data.draw(stable_tables())
    history = History(table, tmp_path_factory.mktemp("history") / "t")
    history.pad(data.draw(rows(table)))
    history.write(data.draw(records(table, kinds, st.just(0))))
    history.compact(full=True)
    for _ in range(data.draw(st.integers(1, 2))):
        for _ in range(2):
            history.write(data.draw(records(table, kinds, st.just(0))))
        history.check()
        history.compact(full=False)
        event(f"levels {sorted(history.levels())}")
        history.check()
    history.compact(full=True)
    history.check()
