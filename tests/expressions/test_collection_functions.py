"""Functions of arrays, maps and structs, and the types of their results."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from tests.sql.local.bound import table_of, type_of, value_of


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("size(array(1, NULL))", 2),
        ("size(map('a', 1))", 1),
        ("array_contains(array(1, NULL), 1)", True),
        ("array_contains(array(1, NULL), 2)", None),
        ("array_contains(array(1L, 3L), 2)", False),
        ("array_contains(array(1), CAST(NULL AS INT))", None),
        ("element_at(array('a', 'b'), -1)", "b"),
        ("element_at(map('a', 1), 'b')", None),
        ("map_keys(map('a', 1, 'b', NULL))", ["a", "b"]),
        ("map_values(map('a', 1, 'b', NULL))", [1, None]),
        ("map_contains_key(map('a', 1), 'a')", True),
        ("sort_array(array(3, NULL, 1))", [None, 1, 3]),
        ("sort_array(array(3, NULL, 1), FALSE)", [3, 1, None]),
        ("array_join(array('a', NULL, 'b'), '-')", "a-b"),
        ("named_struct('a', 1, 'it''s', 'x')", {"a": 1, "it's": "x"}),
        ("struct(one, one + 1, 'x' AS q)", {"one": 1, "col2": 2, "q": "x"}),
        ("array(array(1), array(2, 3))", [[1], [2, 3]]),
        ("array(1, 2)[1]", 2),
        ("array(named_struct('a', 1, 'b', 'x'))[0].B", "x"),
        ("(struct(struct(7 AS q) AS r)).r.q", 7),
        ("array(named_struct('a', 1), named_struct('a', 2)).a", [1, 2]),
    ],
)
def test_values(expression: str, value: object) -> None:
    assert value_of(expression) == value


def test_elements_have_their_common_type() -> None:
    texts = ["array(1, 2L)", "array(1, 1.5)", "map('a', 1)", "size(array(1))", "named_struct('a', 1L)"]
    assert [type_of(text).replace("item", "element") for text in texts] == [
        "list<element: int64>",
        "list<element: decimal128(11, 1)>",
        "map<string, int32>",
        "int32",
        "struct<a: int64>",
    ]


@pytest.mark.parametrize("text", ["element_at(array(1), 0)", "element_at(array(1), 2)", "map('a', 1, 'a', 2)"])
def test_wrong_indexes_and_keys_are_errors(text: str) -> None:
    with pytest.raises(InvalidInputError, match="SQL: "):
        value_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "array()",
        "array(NULL)",
        "array(1, 'a')",
        "map('a')",
        "map(NULL, 1)",
        "named_struct('a', 1, 'A', 2)",
        "named_struct('a', NULL)",
        "size('a')",
        "size()",
        "map(1.5D, 1)",
        "sort_array(array(1), CAST(NULL AS BOOLEAN))",
        "array_contains(array(1), 1.5)",
        "element_at(array(1), NULL)",
        "sort_array(array(array(1)))",
        "array_size(map('a', 1))",
    ],
)
def test_other_types_are_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="engine='spark'"):
        value_of(text)


def test_elements_of_columns_have_the_types_of_expressions() -> None:
    kinds = {"id": pa.int8(), "tags": pa.list_(pa.string()), "m": pa.map_(pa.string(), pa.int8())}
    kinds["s"] = pa.struct([("x", pa.int16())])
    rows = pa.table(
        {"id": [1, 2], "tags": [["b", "a"], None], "m": [[("k", 1)], []], "s": [{"x": 1}, None]}, schema=pa.schema(kinds)
    )
    text = "SELECT upper(tags[0]) AS t, m['k'] + s.x AS n, size(tags) AS z, map_values(m) AS v FROM t WHERE id = 1"
    assert table_of(text, rows).to_pylist() == [{"t": "B", "n": 2, "z": 2, "v": [1]}]
