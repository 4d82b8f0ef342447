"""What Paimon's lookup files have for a key."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.row.row_bytes import RowBytes
from lakelsm.lookup.store.persisted_values import CompactedValues, PersistedValues, ValueProcessor
from lakelsm.schema.system_columns import POSITION, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.types import parse_columns
from tests.lookup.partial.beside_data_files import values_of

FIELDS = parse_columns("id INT, v STRING")
ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "v": ["a", None],
        POSITION: pa.array([0, 300], pa.int64()),
        SEQUENCE_NUMBER: pa.array([7, -1], pa.int64()),
        VALUE_KIND: pa.array([0, 3], pa.int8()),
    }
)
POSITION_0, POSITION_300 = "0000000000000000", "2c01000000000000"
ROW_1, ROW_2 = "0000 01000000 01 61", "0002 02000000"
SEQUENCES = ("0700000000000000", "ffffffffffffffff")


@pytest.mark.parametrize(
    ("processor", "expected"),
    [
        (ValueProcessor.VALUE, [f"{ROW_1} {SEQUENCES[0]} 00", f"{ROW_2} {SEQUENCES[1]} 03"]),
        (
            ValueProcessor.VALUE_AND_POSITION,
            [f"{ROW_1} {POSITION_0} {SEQUENCES[0]} 00", f"{ROW_2} {POSITION_300} {SEQUENCES[1]} 03"],
        ),
    ],
)
def test_values_of_the_bytes_of_the_page_are_read(processor: ValueProcessor, expected: list[str]) -> None:
    form = PersistedValues(processor, FIELDS)
    values = pa.array([bytes.fromhex(text) for text in expected])
    assert form.decode(RowBytes.of(values)).equals(ROWS.select(list(form.columns)))
    assert values_of(ROWS, processor, FIELDS).equals(values)


@pytest.mark.parametrize("processor", [ValueProcessor.POSITION, ValueProcessor.EMPTY])
def test_some_processors_keep_no_rows(processor: ValueProcessor) -> None:
    assert PersistedValues(processor, FIELDS).columns == ()


@pytest.mark.parametrize(
    ("processor", "value", "problem"),
    [
        (ValueProcessor.VALUE, "0000", "shorter than its sequence number"),
        (ValueProcessor.VALUE_AND_POSITION, "00" * 16, "shorter than its sequence number"),
        (ValueProcessor.VALUE, f"{ROW_1} {SEQUENCES[0]} 04", "a kind that no row has"),
        (ValueProcessor.VALUE, f"{ROW_1} 00 {SEQUENCES[0]} 00", "behind its last field"),
    ],
)
def test_values_of_another_form_are_refused(processor: ValueProcessor, value: str, problem: str) -> None:
    with pytest.raises(CorruptTableError, match=problem):
        PersistedValues(processor, FIELDS).decode(RowBytes.of(pa.array([bytes.fromhex(value)])))


def test_values_of_lakelsms_own_stores_are_compacted_rows_of_the_layout() -> None:
    form = CompactedValues(FIELDS)
    assert [value.hex() for value in form.encode(ROWS).to_pylist()] == [
        text.replace(" ", "") for text in (ROW_1, ROW_2)
    ]
    assert form.decode(RowBytes.of(form.encode(ROWS))).equals(ROWS.select(["id", "v"]))
