"""The rules for the rows of a data file, over several batches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm.format.data_file.key_value_file import row_schema
from lakelsm.format.manifest.data_file_meta import SimpleStats
from lakelsm.maintain.check.file_rows import ExpectedRows, FileRows
from tests.commit.commit_table import CommitTable, add, file, key


def broken(folder: Path, *batches: list[int], hashes: Any = None, total: int = 1, **entry: Any) -> list[str]:
    """Return the rules that rows with these keys break, in a file with the keys 1 to 9."""
    schema = CommitTable(folder / "t").schema
    rows = FileRows(add(replace(file(), **entry), total=total), schema, ExpectedRows("default", hashes))
    start = 0
    for keys in batches:
        columns = [[5] * len(keys), [0] * len(keys), ["a"] * len(keys), keys, ["v"] * len(keys)]
        rows.add(start, pa.table(columns, schema=row_schema(schema.fields)))
        start += len(keys)
    return [rule.name for rule, _ in rows.problems()]


def test_rows_ascend_within_and_across_batches(tmp_path: Path) -> None:
    assert broken(tmp_path, [1, 2, 3], [4, 9]) == []
    assert broken(tmp_path, [1, 3, 2], [4, 9]) == ["row-order"]
    assert broken(tmp_path, [1, 2, 3], [3, 9]) == ["row-order"]


def test_the_key_range_is_that_of_the_first_and_the_last_batch(tmp_path: Path) -> None:
    assert broken(tmp_path, [1], [4], [9]) == []
    assert broken(tmp_path, [2], [9]) == ["key-range"]
    assert broken(tmp_path, [1], [8]) == ["key-range"]


def test_keys_are_in_their_bucket_or_in_its_hash_index(tmp_path: Path) -> None:
    assert broken(tmp_path, [1, 9], total=1000) == ["row-bucket"]
    assert broken(tmp_path, [1, 9], total=-1, hashes=np.array([4], np.int32)) == ["hash-index-keys"]
    assert broken(tmp_path, [1, 9], total=-1) == []


def test_statistics_cover_all_values(tmp_path: Path) -> None:
    assert broken(tmp_path, [1, 9], key_stats=SimpleStats(key(1), key(9), (0,))) == []
    assert broken(tmp_path, [1, 9], key_stats=SimpleStats(key(1), key(8), (0,))) == ["column-statistics"]
    assert broken(tmp_path, [1, 9], key_stats=SimpleStats(key(1), key(9), (2,))) == ["column-statistics"]
    assert broken(tmp_path, [1, 9], key_stats=SimpleStats(key(None), key(None), (0,))) == []
