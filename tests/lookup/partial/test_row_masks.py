"""RowMasks: which rows of a data file its deletion vector masks, by position."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.partial.live_buckets import LiveBuckets
from lakelsm.lookup.partial.row_masks import RowMasks
from lakelsm.merge.merge_unit import RunFile
from tests.compact.local_table import LocalTable


def _masked_files(root: Path) -> tuple[LocalTable, list[RunFile]]:
    """Two files with masked rows above level 0, in two buckets, and newer files."""
    table = LocalTable(root, bucket="2", deletion_vectors__enabled="true", num_sorted_run__compaction_trigger="9")
    table.write(*((at, "old") for at in range(100)))
    table.compact()
    table.write((3, "new"), (50, "new"), (99, "new"))
    table.compact(full=False)
    live = LiveBuckets.of(LookupSpec(table.store, ("id",), ("v",)), table.latest)
    return table, [file for file in live.files if file.vector is not None]


def test_masked_rows_are_found_by_their_positions(tmp_path: Path) -> None:
    table, files = _masked_files(tmp_path)
    masks = RowMasks(table.store.file_io, memory_bytes=1)
    assert files
    for _ in range(2):  # The second time, only one mask is still in memory.
        for file in files:
            assert file.vector is not None
            every = np.arange(file.row_count)
            expected = set(file.vector.read(table.store.file_io.filesystem(), file.row_count))
            masked = masks.masked(file, every)
            assert masked is not None
            assert set(np.flatnonzero(masked).tolist()) == expected
            shown = np.array(sorted({*every.tolist()} - expected))
            assert masks.masked(file, shown) is None
            assert masks.masked(file, shown[:0]) is None
    assert len(masks._bits) == 1
