"""Row kinds: their persisted codes, and which of them are retractions."""

from __future__ import annotations

import pyarrow as pa

from lakelsm.format.row_kinds import DELETE, INSERT, RETRACTIONS, ROW_KINDS, UPDATE_AFTER, UPDATE_BEFORE, is_retract


def test_the_kinds_have_the_codes_of_paimon() -> None:
    assert [ROW_KINDS.index(kind) for kind in ("+I", "-U", "+U", "-D")] == [0, 1, 2, 3]
    assert (INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE) == (0, 1, 2, 3)


def test_retractions_are_found_in_arrays_and_in_chunked_ones() -> None:
    kinds = pa.array(range(4), pa.int8())
    expected = [kind in RETRACTIONS for kind in range(4)]
    assert is_retract(kinds).tolist() == is_retract(pa.chunked_array([kinds[:1], kinds[1:]])).tolist() == expected
    assert is_retract(kinds[:0]).tolist() == []
