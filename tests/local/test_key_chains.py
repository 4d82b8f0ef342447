"""Units of a read are chained in ascending key order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from lakelsm.local.key_chains import in_key_order, key_chains
from lakelsm.plan.read_plan import plan_read
from tests.compact.local_table import LocalTable


def test_files_without_overlap_form_one_chain_and_others_several(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    for start in (20, 0, 10):
        table.write(*((at, "v") for at in range(start, start + 10)))
    plan = plan_read(table.store, table.latest, None)
    (chain,) = key_chains(table.store, plan.raw_files)
    assert [file.expected.max_sequence_number for file in chain] == [19, 29, 9]  # type: ignore[union-attr]
    table.write((5, "w"), (25, "w"))
    plan = plan_read(table.store, table.latest, None)
    assert [len(chain) for chain in key_chains(table.store, [*plan.raw_files, *plan.units])] == [
        len(plan.raw_files) + len(plan.units)
    ]
    assert [len(chain) for chain in key_chains(table.store, [*plan.merged_files, *plan.raw_files])] == [3, 1]


def test_large_sections_are_chains_of_units(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", target_file_size="1kb", source__split__target_size="1b")
    table.write(*((at, f"value {at * 7919 % 1000}" * 9) for at in range(3000)))
    table.compact()
    table.write(*((at, "new") for at in range(0, 2000, 9)))
    plan = plan_read(table.store, table.latest, None)
    assert len(plan.units) > 1
    (chain,) = key_chains(table.store, [*reversed(plan.units), *plan.raw_files])
    assert [unit for unit in chain if unit in plan.units] == list(plan.units)


def test_streams_are_merged_in_the_order_of_the_key() -> None:
    streams = [iter([pa.table({"k": part}) for part in stream]) for stream in ([[1, 4], [6]], [[2, 3, 5]], [[0]])]
    assert [key for rows in in_key_order(streams, ["k"]) for key in rows.column("k").to_pylist()] == list(range(7))
