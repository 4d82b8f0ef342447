"""Segments keep rows in order, in record batches of bounded size, and return copies of them."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import CorruptStoreError, UnsupportedFeatureError
from lakelsm.lookup.store import arrow_segment
from lakelsm.lookup.store.arrow_segment import RowsByBatch, Segment, SegmentRows, SegmentWriter
from lakelsm.types import DataField, parse_type
from lakelsm.types.nano_timestamps import nano_timestamps

_FIELDS = (DataField(0, "id", parse_type("INT NOT NULL")), DataField(1, "text", parse_type("STRING")))


def _segment(path: Path, *tables: pa.Table, fields: tuple[DataField, ...] = _FIELDS) -> Segment:
    with SegmentWriter(path, fields, []) as writer:
        for table in tables:
            writer.write(table)
        writer.finish()
    return Segment.open(path)


def _rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    texts = [None if number % 5 == 0 else f"row {number}" for number in numbers]
    return pa.table({"text": texts, "more": [0] * len(texts), "id": pa.array(numbers, pa.int32())})


def test_rows_are_taken_by_row_index_over_all_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_segment, "CHUNK_ROWS", 8)
    first = _segment(tmp_path / "a", _rows(0, 3), _rows(3, 21))
    rows = SegmentRows(_FIELDS, [first, _segment(tmp_path / "b"), _segment(tmp_path / "c", _rows(21, 30))])
    assert (first.lengths, rows.first_rows, len(rows)) == ([8, 8, 5], [0, 21, 21], 30)
    wanted = np.array([29, 0, 7, 8, 29, 20, 21, 5])
    taken = rows.take(wanted, ["text", "id"])
    assert taken.column("id").to_pylist() == wanted.tolist()
    assert taken.column("text").to_pylist() == ["row 29", None, "row 7", "row 8", "row 29", None, "row 21", None]
    assert [rows.row(row, ["id", "text"]) for row in (0, 8, 21)] == [(0, None), (8, "row 8"), (21, "row 21")]
    assert rows.take(wanted, []).shape == (8, 0) and rows.take(wanted[:0], ["id"]).shape == (0, 1)


def test_record_batches_are_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_segment, "CHUNK_BYTES", 1000)
    wide = pa.table({"id": pa.array(range(40), pa.int32()), "text": ["x" * 300] * 40})
    segment = _segment(tmp_path / "a", wide)
    assert sum(segment.lengths) == 40 and max(segment.lengths) <= 6
    rows = SegmentRows(_FIELDS, [segment]).take(np.arange(40), ["id", "text"])
    assert rows.equals(wide)


def test_single_rows_have_values_for_users(tmp_path: Path) -> None:
    fields = (
        DataField(0, "at", parse_type("TIMESTAMP(9)")),
        DataField(1, "tags", parse_type("ARRAY<STRING>")),
        DataField(2, "when", parse_type("TIMESTAMP(6)")),
    )
    times = nano_timestamps(np.array([5_000_000, -(2**60)]), np.array([0, 0]))
    tags = pa.array([["a", None], None], pa.list_(pa.string()))
    when = pa.array([1, 2**60], pa.int64()).cast(pa.timestamp("us"))
    segment = _segment(tmp_path / "a", pa.table({"at": times, "tags": tags, "when": when}), fields=fields)
    rows = SegmentRows(fields, [segment])
    assert rows.row(0, ["tags", "at"]) == (["a", None], datetime(1970, 1, 1, 0, 0, 5))
    assert rows.row(0, ["when"]) == (datetime(1970, 1, 1, 0, 0, 0, 1),)
    for name in ("when", "at"):
        with pytest.raises(UnsupportedFeatureError):
            rows.row(1, [name])


def test_columns_too_large_for_one_array_are_taken_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, sizes = RowsByBatch.take, []

    def bounded(placed: RowsByBatch, names: list[str]) -> pa.Table:
        rows = take(placed, names)
        sizes.append(len(rows))
        if len(rows) > 4:
            raise pa.ArrowInvalid("offset overflow")
        return rows

    monkeypatch.setattr(RowsByBatch, "take", bounded)
    rows = SegmentRows(_FIELDS, [_segment(tmp_path / "a", _rows(0, 10))])
    assert rows.take(np.arange(9, -1, -1), ["id"]).column("id").to_pylist() == list(range(9, -1, -1))
    assert sizes == [10, 5, 2, 3, 5, 2, 3]


def test_segments_of_other_columns_or_without_rows_are_refused(tmp_path: Path) -> None:
    segment = _segment(tmp_path / "a", _rows(0, 3))
    with pytest.raises(CorruptStoreError, match=r"it has the columns \['id', 'text'\] instead of \['id'\]"):
        SegmentRows(_FIELDS[:1], [segment])
    with SegmentWriter(tmp_path / "b", _FIELDS, [_FIELDS[:1]]) as writer:
        writer.write(_rows(0, 3))
        writer.finish()
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "b.0.hashes"]
    with pytest.raises(CorruptStoreError, match="it has no rows"):
        Segment.open(tmp_path / "b.0.hashes")


def test_the_rows_of_a_file_are_a_stream_of_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_segment, "CHUNK_ROWS", 8)
    segment = _segment(tmp_path / "a", _rows(0, 21))
    with pa.OSFile(str(tmp_path / "a")) as file, pa.ipc.open_stream(file) as stream:
        assert stream.read_all().equals(_rows(0, 21).select(["id", "text"]))
    segment.close()


def test_a_writer_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyError), SegmentWriter(tmp_path / "a", _FIELDS, [_FIELDS[:1], _FIELDS]) as writer:
        writer.write(pa.table({"id": pa.array([1], pa.int32())}))
    assert os.listdir(tmp_path) == []
    (tmp_path / "a.1.hashes").touch()
    with pytest.raises(OSError, match=r"a\.1\.hashes cannot be written"):
        SegmentWriter(tmp_path / "a", _FIELDS, [_FIELDS[:1], _FIELDS])
    assert os.listdir(tmp_path) == ["a.1.hashes"]

