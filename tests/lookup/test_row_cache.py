"""The rows that were handed out last."""

from __future__ import annotations

import pyarrow as pa

from lakelsm.lookup.row_cache import RowCache
from lakelsm.types import DataField, parse_type

FIELDS = (DataField(0, "k", parse_type("INT NOT NULL")), DataField(1, "t", parse_type("STRING NOT NULL")))


def cache(most: int = 10) -> RowCache:
    return RowCache(FIELDS, most)


def keys(*rows: tuple[int, str]) -> pa.Table:
    numbers, texts = zip(*rows)
    return pa.table({"k": pa.array(numbers, pa.int32()), "t": texts})


def test_the_key_not_asked_for_longest_goes_and_misses_count_too() -> None:
    kept = cache(3)
    for number in range(3):
        kept.put((number, "a"), [(number,)] if number else [], kept.era)
    assert kept.get((0, "a")) == []
    kept.put((3, "a"), [(3,)], kept.era)
    assert [kept.get((number, "a")) for number in range(4)] == [[], None, [(2,)], [(3,)]]


def test_rows_are_counted_and_not_keys() -> None:
    kept = cache(3)
    kept.put((1, "a"), [(1,), (2,)], kept.era)
    kept.put((2, "a"), [(1,), (2,)], kept.era)
    kept.put((3, "a"), [(1,)] * 4, kept.era)
    assert [kept.get((number, "a")) for number in range(1, 4)] == [None, [(1,), (2,)], None]


def test_exactly_the_keys_that_changed_go() -> None:
    kept = cache(1000)
    for number in range(100):
        kept.put((number, "é"), [(number,)], kept.era)
    kept.drop(keys((7, "é"), (8, "x"), (99, "é"), (1000, "é")))
    assert [number for number in range(100) if kept.get((number, "é")) is None] == [7, 99]
    kept.drop(keys((1, "é")).slice(1))
    assert kept.get((1, "é")) == [(1,)]


def test_keys_that_are_equal_go_whatever_their_bits() -> None:
    kept = RowCache([DataField(0, "x", parse_type("FLOAT"))], 10)
    for number in (0.0, 1.5):
        kept.put((number,), [("old",)], kept.era)
    kept.drop(pa.table({"x": pa.array([-0.0], pa.float32())}))
    assert (kept.get((0.0,)), kept.get((1.5,))) == (None, [("old",)])


def test_all_go_where_any_may_have_changed() -> None:
    for changed in (None, keys((5, "b")).select(["k"])):
        kept = cache()
        kept.put((1, "a"), [(1,)], kept.era)
        kept.drop(changed)
        assert kept.get((1, "a")) is None


def test_what_was_looked_for_before_a_refresh_is_not_kept() -> None:
    kept = cache()
    era = kept.era
    kept.drop(keys((5, "b")))
    kept.put((1, "a"), [(1,)], era)
    assert kept.get((1, "a")) is None


def test_none_are_kept_where_no_room_is() -> None:
    kept = cache(0)
    kept.put((1, "a"), [], kept.era)
    assert kept.get((1, "a")) is None
