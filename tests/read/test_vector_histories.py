"""Random histories of tables with deletion vectors: every snapshot has the rows of a table without vectors."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.plan.read_plan import plan_read
from tests.conformance.table_case import KindedRow
from tests.examples import examples
from tests.read.file_engine import FileTable
from tests.read.test_changelog_states import ENGINES, Row, applied, batches, table_below


def rows(table: FileTable, snapshot: Any, fresh: bool = False) -> dict[int, Row]:
    """Return the rows of a snapshot by key; they must not depend on which files tasks read."""
    plan = plan_read(table.store, snapshot, None, fresh)
    found = table.scanned(plan).to_pylist()
    if not MergeSpec.of(table.store.schema, table.store.options).keeps_rows:
        assert sorted(map(repr, found)) == sorted(map(repr, table.scanned(plan, 1 << 30).to_pylist()))
    keyed = {row["k"]: tuple(row.values()) for row in found}
    assert len(keyed) == len(found), "a key is there twice"
    return keyed


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "first-row"])
@given(st.data())
@examples(3)
def test_rows_with_vectors_equal_those_without_and_differences_lead_from_state_to_state(
    engine: str, data: st.DataObject
) -> None:
    """The other table looks rows up too, so that combined rows are merged in the same order."""
    options, retractions = ENGINES[engine]
    with TemporaryDirectory() as folder:
        common = {"write-only": "true", "file.compression": "none", "target-file-size": "1 mb", **options}
        table = table_below(str(Path(folder, "vectors")), {"deletion-vectors.enabled": "true", **common})
        twin = table_below(str(Path(folder, "twin")), {"changelog-producer": "lookup", **common})
        seen: list[tuple[Any, dict[int, Row]]] = [(None, {})]
        full: bool | None
        # The first file is much larger than the next ones: most compactions do not rewrite it, but mask rows of it.
        batch, full = [KindedRow("+I", (key, 1, 1, "x")) for key in range(400)], True
        for step in range(data.draw(st.integers(2, 4))):
            if step:
                batch, full = data.draw(batches(retractions)), data.draw(st.sampled_from([None, False, False, True]))
            for one in (table, twin):
                one.write(batch, {})
                if full is not None:
                    one.compact(full=full)
            newest = table.store.snapshots.latest()
            assert rows(table, newest, fresh=True) == rows(twin, twin.store.snapshots.latest())
            shown = rows(table, newest)
            if full is not None:
                assert shown == rows(table, newest, fresh=True)
            seen.append((newest, shown))
        for snapshot, known in seen:
            assert rows(table, snapshot) == known
        before, after = (seen[data.draw(st.integers(0, len(seen) - 1))] for _ in range(2))
        assert applied(before[1], table.difference(before[0], after[0])) == after[1]
        masked = sum(file.vector is not None for file in plan_read(table.store, seen[-1][0], None).raw_files)
        event(f"{min(masked, 2)} files with vectors at least")
