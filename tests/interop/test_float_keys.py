"""0.0, -0.0 and NaN as keys between Java Paimon and lakelsm (docs/keys.md)."""

from __future__ import annotations

import math
from pathlib import Path

from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon
from tests.interop.samples import rows_of

COLUMNS = "k DOUBLE, v INT"


def test_java_reads_the_zeros_of_lakelsm_as_one_key(
    ours: LakelsmTables, java: JavaPaimon, path: Path
) -> None:
    ours.create(path, COLUMNS, ["k"], options={"bucket": "16", "write-only": "true"})
    ours.write(path, rows_of(COLUMNS, {"k": [0.0, 1.0, -0.0], "v": [1, 2, 3]}))
    ours.write(path, rows_of(COLUMNS, {"k": [-0.0], "v": [4]}))
    expected = [("0.0", 4), ("1.0", 2)]
    assert ours.read(path) == java.read(path) == expected
    ours.compact(path)
    assert ours.read(path) == java.read(path) == expected


def test_zeros_of_java_are_one_key_before_and_after_a_compaction_and_can_be_deleted(
    ours: LakelsmTables, java: JavaPaimon, path: Path
) -> None:
    java.create(path, COLUMNS, ["k"], options={"bucket": "1", "write-only": "true"})
    java.write(path, rows_of(COLUMNS, {"k": [0.0, 1.0], "v": [1, 2]}))
    java.write(path, rows_of(COLUMNS, {"k": [-0.0], "v": [3]}))
    expected = [("-0.0", 3), ("1.0", 2)]
    assert ours.read(path) == java.read(path) == expected
    ours.compact(path)
    assert ours.read(path) == java.read(path) == expected
    ours.delete(path, "k = 0.0D")
    assert ours.read(path) == java.read(path) == expected[1:]


def test_a_zero_in_another_bucket_of_java_is_deleted_there(
    ours: LakelsmTables, java: JavaPaimon, path: Path
) -> None:
    java.create(path, COLUMNS, ["k"], options={"bucket": "16", "write-only": "true"})
    java.write(path, rows_of(COLUMNS, {"k": [0.0, -0.0], "v": [1, 2]}))
    assert ours.read(path) == java.read(path) == [("-0.0", 2), ("0.0", 1)], "two buckets, which nobody merges"
    ours.delete(path, "k = 0.0D")
    assert ours.read(path) == java.read(path) == []


def test_nan_is_one_key_in_files_of_both(either: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    java.create(path, COLUMNS, ["k"], options={"bucket": "1", "write-only": "true"})
    java.write(path, rows_of(COLUMNS, {"k": [math.nan], "v": [1]}))
    either.write(path, rows_of(COLUMNS, {"k": [math.nan], "v": [2]}))
    assert either.read(path) == java.read(path) == [("nan", 2)]
    either.write(path, rows_of(COLUMNS, {"k": [7.0], "v": [3]}))
    assert either.read(path) == [("7.0", 3), ("nan", 2)], "Java takes NaN for equal to any number, and shows one row"
    either.compact(path)
    assert either.read(path) == java.read(path) == [("7.0", 3), ("nan", 2)]
