"""listagg, collect, merge_map and merge_map_with_keytime, value by value."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakelsm.merge.functions.collection_functions import element_indexes, lists_of
from tests.merge.one_key import DELETE, GROUP, INSERT, UPDATE_BEFORE, function, merged

MAP, TIMED = "MAP<STRING, INT>", "MAP<STRING, ROW<v INT, t STRING>>"


def folded(column: str, options: dict[str, str], *values: Any) -> Any:
    return merged(column, options, *((INSERT, value) for value in values))


def retracting(column: str, options: dict[str, str], accumulated: Any, retracted: Any) -> Any:
    return merged(column, options, (INSERT, accumulated), (DELETE, retracted))


def out_of_order(column: str, options: dict[str, str], newer: Any, older: Any) -> Any:
    return merged(column, {**GROUP, **options}, (INSERT, newer, 2), (INSERT, older, 1))


LISTAGG = function("listagg")


def test_texts_are_joined_and_blank_ones_left_out() -> None:
    assert folded("STRING", LISTAGG, "a", "b", "a") == "a,b,a"
    assert folded("STRING", LISTAGG, "a", None, "", " \t", "b") == "a,b"
    assert folded("STRING", function("listagg", list_agg_delimiter=" | "), "a", "b") == "a | b"
    assert folded("STRING", LISTAGG, None, None) is None


def test_blank_is_defined_by_whitespace_of_java() -> None:
    for blank in ("\u2003", "\x1c", "\n"):
        assert folded("STRING", LISTAGG, "a", blank) == "a"
    for space in ("\xa0", "\u2007", "\u202f", "\x85"):
        assert folded("STRING", LISTAGG, "a", space) == f"a,{space}"


def test_an_older_text_goes_in_front() -> None:
    assert out_of_order("STRING", LISTAGG, "b", "a") == "a,b"


def test_distinct_texts_are_split_at_the_delimiter_and_the_first_text_is_not_changed() -> None:
    distinct = function("listagg", distinct="true")
    assert folded("STRING", distinct, "a,a", "b,a,,b", "c") == "a,a,b,c"
    assert folded("STRING", function("listagg", distinct="true", list_agg_delimiter=";"), "a,b", "b", "a,b") == "a,b;b"


COLLECT, DISTINCT = function("collect"), function("collect", distinct="true")


def test_elements_are_collected_nulls_included_and_a_null_array_adds_nothing() -> None:
    assert folded("ARRAY<INT>", COLLECT, [1], None, [1, None], []) == [1, 1, None]
    assert folded("ARRAY<INT>", COLLECT, None, None) is None
    assert folded("ARRAY<INT>", COLLECT, None, []) == []
    assert folded("ARRAY<STRING>", COLLECT, ["a"], ["b", "a"]) == ["a", "b", "a"]


def test_distinct_elements_are_kept_once_in_the_order_of_their_first() -> None:
    assert folded("ARRAY<INT>", DISTINCT, [2, 1, 2], [None, 1, None]) == [2, 1, None]
    assert folded("ARRAY<ARRAY<INT>>", DISTINCT, [[1], [2]], [[1], None]) == [[1], [2], None]


def test_a_retraction_removes_one_of_each_of_its_elements() -> None:
    assert retracting("ARRAY<INT>", COLLECT, [1, 2, 1, 1], [1, 1, 9]) == [2, 1]
    assert retracting("ARRAY<INT>", COLLECT, [1, 2], None) == [1, 2]
    assert retracting("ARRAY<INT>", COLLECT, None, [1]) is None


@pytest.mark.parametrize(("ignore", "expected"), [("false", [3, 1]), ("true", [1, 3])])
def test_collect_puts_an_older_row_last_unless_it_ignores_retractions(ignore: str, expected: list[int]) -> None:
    assert out_of_order("ARRAY<INT>", function("collect", ignore_retract=ignore), [3], [1]) == expected


MERGE_MAP = function("merge_map")


def test_the_later_value_of_a_map_key_wins_null_included() -> None:
    merged_maps = folded(MAP, MERGE_MAP, [("a", 1), ("b", 2)], None, [("b", None), ("c", 3)])
    assert merged_maps == [("a", 1), ("b", None), ("c", 3)]
    assert folded(MAP, MERGE_MAP, None, None) is None
    assert out_of_order(MAP, MERGE_MAP, [("a", 2)], [("a", 1), ("b", 1)]) == [("a", 2), ("b", 1)]


def test_a_retraction_removes_its_keys_whatever_their_values() -> None:
    assert retracting(MAP, MERGE_MAP, [("a", 1), ("b", 2)], [("a", 7), ("z", 1)]) == [("b", 2)]
    assert retracting(MAP, MERGE_MAP, [("a", 1)], None) == [("a", 1)]
    assert merged(MAP, MERGE_MAP, (UPDATE_BEFORE, [("a", 1)]), (INSERT, [("a", 2)])) == [("a", 2)]


def at(value: int, time: str | None) -> dict[str, Any]:
    return {"v": value, "t": time}


KEYTIME = function("merge_map_with_keytime")


def test_the_greatest_time_of_a_key_wins_and_the_earlier_of_equals() -> None:
    held, late, same = ("a", at(1, "5")), ("a", at(2, "6")), ("a", at(3, "6"))
    assert folded(TIMED, KEYTIME, [held], [late]) == folded(TIMED, KEYTIME, [late], [held]) == [late]
    assert folded(TIMED, KEYTIME, [late], [same]) == [late]


def test_times_are_compared_as_java_compares_texts() -> None:
    high, low = ("a", at(1, "\uffff")), ("a", at(2, "\U00010000"))
    assert folded(TIMED, KEYTIME, [low], [high]) == folded(TIMED, KEYTIME, [high], [low]) == [high]


def test_a_null_removes_its_key_and_a_value_without_a_time_is_ignored() -> None:
    assert folded(TIMED, KEYTIME, [("a", at(1, "1")), ("b", at(2, "1"))], [("a", None)]) == [("b", at(2, "1"))]
    assert folded(TIMED, KEYTIME, [("a", at(1, "1"))], [("a", at(2, None))]) == [("a", at(1, "1"))]
    assert folded(TIMED, KEYTIME, [("a", at(1, None))], [("a", at(2, "0"))]) == [("a", at(2, "0"))]


def test_the_time_may_be_another_member_than_the_last() -> None:
    rows = [[("a", {"t": "2", "v": "1"})], [("a", {"t": "1", "v": "9"})]]
    column = "MAP<STRING, ROW<t STRING, v STRING>>"
    assert folded(column, KEYTIME, *rows) == rows[1]
    assert folded(column, function("merge_map_with_keytime", ts_field="t"), *rows) == rows[0]


def test_lists_are_converted_to_indexes_of_elements_and_back() -> None:
    array = pa.array([[7], [1], None, [], [2, None]], pa.list_(pa.int32())).slice(1)
    indexes = element_indexes(array)
    assert indexes == [[1], None, [], [2, 3]]
    assert lists_of(array.type, indexes, array.values).to_pylist() == [[1], None, [], [2, None]]
    assert lists_of(array.type, [], array.values).to_pylist() == []
