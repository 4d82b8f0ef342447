"""FoundRows: what several lookups found, as one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakelsm.lookup.found_rows import FoundRows


def found(probes: list[int], rows: list[str]) -> FoundRows:
    return FoundRows(np.array(probes, np.int64), pa.table({"v": pa.array(rows, pa.string())}))


def test_rows_of_several_lookups_come_in_the_order_of_the_keys_and_of_a_key_in_that_of_the_lookups() -> None:
    together = FoundRows.together([found([0, 2, 2], ["a", "b", "c"]), found([], []), found([0, 1], ["d", "e"])])
    assert together.probes.tolist() == [0, 0, 1, 2, 2]
    assert together.rows.column("v").to_pylist() == ["a", "d", "e", "b", "c"]


def test_what_one_lookup_found_is_no_copy() -> None:
    only = found([1], ["a"])
    assert FoundRows.together([only]) is only
