"""A compaction checks its arguments, and is restricted to the partitions of a condition."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError
from tests.maintain.partitions.partitioned_table import fill, partitioned


def test_arguments_are_checked_and_a_condition_selects_partitions(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    fill(table, "2020-01-01", "2020-01-02")
    for wrong in ({"full": 1}, {"buckets": "x"}, {"commit_every": 0}, {"deadline": -1}, {"engine": "flink"}):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            table.compact(**wrong)  # type: ignore[arg-type]
    assert table.compact(full=True, where="dt = '2020-01-01'", dry_run=True, engine="local").buckets == 1
