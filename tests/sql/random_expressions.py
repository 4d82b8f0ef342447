"""Random expressions of all types, and rows with the values for which engines differ."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

_TIMES = [
    datetime(2020, 1, 1), datetime(2020, 2, 29, 13, 14, 15, 123456), datetime(1999, 12, 31, 23, 59, 59),
    datetime(1969, 12, 31, 23, 59, 59, 999999), None, datetime(2024, 6, 15, 1, 2, 3), datetime(2000, 1, 31),
    datetime(1900, 3, 1),
]  # fmt: skip
_DAYS = [None if each is None else each.date() for each in _TIMES[:3]] + [
    date(1970, 1, 1), None, date(2024, 6, 15), date(2000, 1, 31), date(1900, 3, 1),
]  # fmt: skip
_SMALL_DAYS = [date(2024, month, month * 2) for month in range(1, 8)] + [None]


def _numbers(texts: str, precision: int, scale: int) -> pa.Array:
    return pa.array([None if each == "-" else Decimal(each) for each in texts.split()], pa.decimal128(precision, scale))


def _rows(columns: dict[str, pa.Array], lists: list[Any], words: list[Any], pairs: list[Any]) -> pa.Table:
    """Return rows with columns of nested types, too."""
    pairs_of_rows = zip(columns["i"].to_pylist(), words)
    records = [None if n is None else {"n": n, "t": w[0] if w else None, "l": w} for n, w in pairs_of_rows]
    struct = pa.struct([("n", pa.int32()), ("t", pa.string()), ("l", pa.list_(pa.string()))])
    return pa.table(
        {
            "row": pa.array(range(8), pa.int32()),
            **columns,
            "g": pa.array(lists, pa.list_(pa.int32())),
            "h": pa.array(words, pa.list_(pa.string())),
            "k": pa.array(pairs, pa.map_(pa.string(), pa.int32())),
            "r": pa.array(records, struct),
        }
    )


#: The least and the greatest values, NaN, zeros of both signs, and texts with special characters.
HOSTILE = _rows(
    {
        "i": pa.array([0, 1, -1, 7, None, 2**31 - 1, -(2**31), 3], pa.int32()),
        "l": pa.array([0, 5, -(2**63), 2**63 - 1, None, 12, 3, -4], pa.int64()),
        "y": pa.array([0, 1, 127, -128, None, 3, 4, 5], pa.int8()),
        "s": pa.array([0, -1, 32767, -32768, None, 30, 4, 500], pa.int16()),
        "f": pa.array([0.0, 1.5, -0.0, math.nan, None, math.inf, 3.25, -2.5], pa.float32()),
        "x": pa.array([0.0, 1.5, -0.0, math.nan, None, -math.inf, 3.25, -2.5], pa.float64()),
        "p": _numbers("0.00 1.25 -3.50 99999999.99 - 2.35 7.00 0.05", 10, 2),
        "q": _numbers("0 1.5 -0.000000000000000001 12345678901234567890.123456789012345678 - 0.5 -2.5 3.999999", 38, 18),
        "w": _numbers("0 1 -1 99999999999999999999 - 5 12 -7", 20, 0),
        "t": pa.array(["", "abc", "Ab C", "12", None, " x ", "a%b_c", "zZ9"]),
        "u": pa.array(["abc", "b", "c", "12", None, "x", "%", "z"]),
        "v": pa.array(["äÖ", "日本語 x", "a\tb\n", "\\", None, "e\u0301", "😀😀", "'\"\0"]),
        "c": pa.array([b"", b"abc", b"\xff\x00", b"ab", None, b"abd", b"\x7f", b"\x80"]),
        "b": pa.array([True, False, None, True, False, True, None, False]),
        "d": pa.array(_DAYS),
        "m": pa.array(_TIMES, pa.timestamp("us")),
        "z": pa.array(_TIMES[::-1], pa.timestamp("us", "UTC")),
    },
    [[], [1, 2, 3], [None], [3, None, 1], None, [2147483647, -1], [5, 5], [0]],
    [["a", "b"], [], ["x", None], None, ["abc"], ["", " ", "é"], [None, None], ["z", "a", "z"]],
    [[("a", 1)], [], [("b", None), ("a", 2)], None, [("", 0)], [("c", 3)], [("a", -1)], [("k", 2**31 - 1)]],
)
#: Small values, so that most expressions have a value in each row.
MILD = _rows(
    {
        "i": pa.array([1, 2, 3, 4, None, 5, 2, 1], pa.int32()),
        "l": pa.array([3, 5, 1, 2, None, 12, 3, 4], pa.int64()),
        "y": pa.array([2, 1, 3, 5, None, 3, 4, 5], pa.int8()),
        "s": pa.array([1, 20, 3, 30, None, 30, 4, 50], pa.int16()),
        "f": pa.array([0.25, 1.5, 2.0, 10.0, None, 100.125, 3.25, 2.5], pa.float32()),
        "x": pa.array([0.5, 1.5, 2.0, 7.75, None, 1000.0, 3.25, 2.5], pa.float64()),
        "p": _numbers("1.00 1.25 3.50 99.99 - 2.35 7.00 0.05", 10, 2),
        "q": _numbers("1 1.5 0.001 123.456 - 0.5 2.5 3.999999", 38, 18),
        "w": _numbers("2 1 4 9 - 5 12 7", 20, 0),
        "t": pa.array(["7", "12", "3", "45", None, "6", "02", "9"]),
        "u": pa.array(["abc", "b", "c", "cab", None, "x", "aaa", "z"]),
        "v": pa.array(["ä", "Hello World", "x y", "it's", None, "ABC", "two  blanks", "ñandú"]),
        "c": pa.array([b"a", b"abc", b"\xff", b"ab", None, b"abd", b"\x7f", b"\x80"]),
        "b": pa.array([True, False, None, True, False, True, None, False]),
        "d": pa.array(_SMALL_DAYS),
        "m": pa.array([each and datetime(each.year, each.month, each.day, 9, 30, 15) for each in _SMALL_DAYS],
                      pa.timestamp("us")),
        "z": pa.array(_TIMES, pa.timestamp("us", "UTC")),
    },
    [[1], [1, 2, 3], [4, 2], [3, None, 1], None, [7, 8], [5, 5], [6]],
    [["a", "b"], ["c"], ["x", None], None, ["abc"], ["", "b"], ["q"], ["z", "a", "z"]],
    [[("a", 1)], [("a", 2), ("b", 3)], [("b", None), ("a", 2)], None, [("", 0)], [("c", 3)], [("a", 1)], [("k", 2)]],
)  # fmt: skip

_FORMATS = ["yyyy-MM-dd", "yy/M/d H:m:s", "dd.MM.yyyy HH:mm:ss.SSS", "EEE, d MMMM y", "yyyyMMdd'T'hh a", "SSSSSS"]
#: What stands for each capital letter at the end: N is a number, I an integer, L a BIGINT, T a text, C a condition, D a
#: date, M a date or time, Z a time of a zone, B bytes, A an array of texts, E an array of integers, K a map of texts to
#: integers, R a row or another collection, P a pattern, F a field, O a comparison, W a format, U a unit.
LEAVES = {
    "N": ["i", "l", "y", "s", "f", "x", "p", "q", "w", "1", "-2", "0", "1.5", "2L", "3.0D", "NULL", "0.001BD", "7S",
          "CAST(1 AS TINYINT)", "r.n", "2.5F", "1e2"],
    "I": ["i", "y", "s", "1", "0", "-1", "3"],
    "L": ["l", "5L"],
    "T": ["t", "u", "v", "'abc'", "''", "'A'", "NULL", "'a%'", "'it''s'", "r.t", "'12'", "' 1.5 '", "'NaN'"],
    "C": ["b", "TRUE", "FALSE", "(NULL IS NULL)", "NULL"],
    "D": ["d", "d", "DATE '2020-02-29'"],
    "M": ["m", "d", "TIMESTAMP_NTZ '2024-02-29 12:30:00'"],
    "Z": ["z"],
    "B": ["c", "c", "X'6162'", "NULL"],
    "A": ["h", "h", "array(t, u)", "array('a', NULL)", "split(u, 'b')", "r.l"],
    "E": ["g", "g", "array(i, 2)"],
    "K": ["k", "k", "map('a', i)"],
    "R": ["struct(i, x)", "r", "g", "h", "k"],
    "P": ["a%", "%b%", "_", "%", "A_C", r"a\\%b%", "", "__%"],
    "F": ["year", "month", "day", "dayofmonth", "quarter", "dayofyear", "weekofyear", "dayofweek", "weekday", "hour",
          "minute", "second"],
    "O": ["=", "<>", "<", "<=", ">", ">=", "<=>"],
    "W": _FORMATS,
    "U": ["year", "QUARTER", "MM", "week", "none"],
}  # fmt: skip
TEMPLATES = {
    "N": [
        "(N + N)", "(N - N)", "(N * N)", "(N / N)", "(N % N)", "(I DIV I)", "abs(N)", "-(N)", "ceil(N)", "floor(N)",
        "sqrt(N)", "sign(N)", "signum(N)", "ceiling(N)",
        "round(N, 1)", "round(N)", "greatest(N, N)", "least(N, N)", "coalesce(N, N)", "nullif(N, N)",
        "CASE WHEN C THEN N ELSE N END", "CASE N WHEN N THEN N END", "if(C, N, N)", "length(T)", "instr(T, T)", "F(M)",
        "extract(year FROM M)", "extract(doy FROM M)", "extract(week FROM M)", "extract(hour FROM m)",
        "datediff(D, D)", "date_diff(M, D)", "CAST(N AS INT)", "CAST(N AS BIGINT)", "CAST(N AS DOUBLE)",
        "CAST(N AS DECIMAL(12, 3))", "CAST(N AS DECIMAL(38, 10))", "CAST(N AS SMALLINT)", "CAST(N AS FLOAT)",
        "CAST(N AS TINYINT)", "CAST(T AS INT)", "CAST(T AS DOUBLE)", "CAST(T AS DECIMAL(10, 2))", "CAST(T AS BIGINT)",
        "CAST(C AS INT)", "octet_length(T)", "(p / N)", "(N DIV N)", "(p % N)", "(q * N)", "(w + N)", "(q - p)",
        "size(A)", "size(K)", "cardinality(E)", "array_size(E)", "element_at(E, I)", "g[0]", "k['a']", "E[1]",
        "element_at(array(N, N), I)", "nvl2(T, N, N)", "unix_date(D)", "locate(T, T)", "position(T, T)",
        "element_at(map(T, N), T)", "element_at(K, T)", "K[T]", "char_length(T)", "ifnull(N, N)", "nvl(N, N)",
        "round(p, 1)", "round(q, 3)", "character_length(T)", "day(M)", "round(x, 2)", "round(N, 2)", "round(f, 1)",
        "CAST(x AS DECIMAL(20, 4))", "CAST(T AS FLOAT)", "CAST(N AS DECIMAL(5, 1))", "struct(N, T).col1",
        "array(struct(N AS a, T AS b), struct(N AS a, T AS b))[0].a", "element_at(array(r), 1).n", "array(N, N)[I]",
    ],
    "T": [
        "upper(T)", "lower(T)", "trim(T)", "ltrim(T)", "rtrim(T)", "(T || T)", "concat(T, I, C)", "substring(T, I, I)",
        "substr(T, I)", "replace(T, T, T)", "reverse(T)", "CAST(I AS STRING)", "CAST(p AS STRING)", "CAST(M AS STRING)",
        "CAST(q AS STRING)", "CAST(l AS STRING)", "CAST(C AS STRING)", "concat(p, d, m)",
        "nvl(T, T)", "CASE WHEN C THEN T END", "md5(T)", "greatest(T, T)", "lpad(T, y, T)", "rpad(T, 5, T)", "lpad(T, 4)",
        "initcap(T)", "concat_ws(T, T, A, T)", "concat_ws(',', A)", "array_join(A, T)", "array_join(A, '-')",
        "element_at(A, I)", "left(T, I)", "right(T, I)", "A[0]", "h[1]", "element_at(A, 1)",
        "repeat(T, 2)", "repeat(T, I % 4)", "date_format(M, 'W')", "TRIM(BOTH T FROM T)", "trim(LEADING 'a' FROM T)",
        "btrim(T)", "TRIM(TRAILING T FROM T)", "coalesce(T, T, T)", "if(C, T, T)", "least(T, T, T)", "nullif(T, T)",
        "ucase(T)", "lcase(T)", "element_at(map(N, T), N)", "named_struct('a', T, 'b', i).a",
        "array(r)[0].t", "(T || CAST(D AS STRING))", "array(T, T)[0]",
    ],
    "D": [
        "date_add(D, I)", "date_sub(D, 3)", "last_day(D)", "last_day(M)", "add_months(D, 3)", "add_months(M, I % 100)",
        "CAST(m AS DATE)", "(D + 1)", "(D - I)",
        "coalesce(D, D)", "to_date(m)", "CAST('2024-02-29' AS DATE)", "trunc(D, 'U')", "(D + INTERVAL 3 DAYS)",
        "(D - INTERVAL 1 MONTH)", "(D + INTERVAL '-2' YEAR)", "(INTERVAL 1 WEEK + D)", "to_date('2024-03-01')",
        "to_date(concat('0', y, '/02/2024'), 'dd/MM/yyyy')", "greatest(D, D)", "CASE WHEN C THEN D ELSE D END",
        "dateadd(D, I)", "date(M)", "nullif(D, D)", "trunc(M, 'U')", "if(C, D, NULL)",
    ],
    "M": [
        "(m + INTERVAL 36 HOURS)", "(M - INTERVAL 1 MONTH)", "(m - INTERVAL 1 DAY 2 MINUTES)",
        "(m + INTERVAL 1.5 SECONDS)", "coalesce(M, M)", "greatest(m, M)", "CAST(D AS TIMESTAMP_NTZ)",
        "to_timestamp_ntz('2024-03-01 02:03:04')", "(m + INTERVAL 13 MONTHS)", "(m - INTERVAL 90 MINUTES)",
    ],
    "Z": ["coalesce(Z, z)", "greatest(Z, Z)", "if(C, Z, z)", "nullif(Z, z)"],
    "B": ["concat(B, B)", "(B || B)", "coalesce(B, B)", "CASE WHEN C THEN B END", "greatest(B, B)", "nullif(B, B)"],
    "A": [
        "array(T, T)", "sort_array(A)", "sort_array(A, FALSE)", "split(T, 'a')", "split(T, ' ')", "map_keys(map('k', T))",
        "map_values(map(1, T, 2, T))", "array(T)", "coalesce(A, A)", "if(C, A, A)", "map_keys(K)", "split(T, '')",
        "split(T, ',')",
    ],
    "E": ["array(I, I)", "sort_array(E)", "sort_array(E, false)", "map_values(K)", "coalesce(E, E)", "if(C, E, NULL)"],
    "K": ["map(T, I)", "map('a', I, 'b', I)", "coalesce(K, K)", "CASE WHEN C THEN K END"],
    "R": [
        "named_struct('n', N, 't', T)", "struct(i, t AS q, D AS d)", "array(N, N)", "map('k', N, 'l', N)", "array(A, A)",
        "sort_array(array(N, N, N))", "array(struct(i, t), struct(I, T))", "map(I, A)", "array(D, D)", "coalesce(r, r)",
        "struct(r, E)", "map(D, N)", "array(Z, z)", "array(C, C)", "array(B)", "sort_array(array(D, M))",
        "sort_array(array(C, C))", "array(K)", "struct(r.n, r.l)", "element_at(array(r, r), 1)",
        "coalesce(struct(N AS a, T AS b), NULL)", "if(C, array(I), E)", "coalesce(K, map('b', 3))", "array(E, array(L))",
    ],
    "C": [
        "(N O N)", "(T O T)", "(D O M)", "(C AND C)", "(C OR C)", "(NOT C)", "(N IN (N, N))", "(N BETWEEN N AND N)",
        "(T IS NULL)", "(N IS NOT NULL)", "(T LIKE 'P')", "(B O B)", "(Z O Z)", "(Z IN (Z, Z))", "(C O C)",
        "(T NOT LIKE 'P')", "(N NOT IN (N, N))", "(N NOT BETWEEN N AND N)", "(C IS TRUE)", "(C IS NOT FALSE)", "isnan(N)",
        "startswith(T, T)", "(T IN (T, T, T))", "(T BETWEEN T AND T)", "(M BETWEEN M AND M)", "(D IN (D, D))",
        "endswith(T, T)", "contains(T, T)", "(N IS DISTINCT FROM N)", "isnotnull(T)", "(T ILIKE 'P')", "isnull(R)",
        "(T NOT ILIKE 'P')", "(T LIKE 'a!%_' ESCAPE '!')", "(T NOT LIKE '%!_%' ESCAPE '!')", "array_contains(A, T)",
        "array_contains(array(N, N), N)", "map_contains_key(map(N, T), N)", "(M O M)", "array_contains(E, N)",
        "map_contains_key(K, T)", "(R IS NULL)", "CASE WHEN C THEN C ELSE C END", "(d > '2020-01-01')", "coalesce(C, C)",
        "(m <= '2020-02-29 13:14:15.123456')", "(T IS NOT DISTINCT FROM T)", "CAST(N AS BOOLEAN)", "if(C, C, NULL)",
        "(N != N)", "(N <> N)", "(NOT (N O N))", "(D IS NOT NULL)",
    ],
}  # fmt: skip
#: The kinds of whole expressions.
KINDS = "NNNTTTCCDMABEKRZ"


def random_expression(seed: int) -> str:
    """Return an expression that is a call or an operator."""
    chance = random.Random(seed)
    return _filled(chance.choice(KINDS), chance.choice([1, 2, 2, 2, 3]), chance.choice)


def _expression(kind: str, depth: int, choose: Callable[[Sequence[str]], str]) -> str:
    if kind not in TEMPLATES or depth == 0 or choose(["leaf", "call", "call"]) == "leaf":
        return choose(LEAVES[kind])
    return _filled(kind, depth, choose)


def _filled(kind: str, depth: int, choose: Callable[[Sequence[str]], str]) -> str:
    """Return a template of a kind in which expressions are at the capital letters that stand alone."""
    words = choose(TEMPLATES[kind])
    parts, at = [], 0
    while at < len(words):
        alone = not words[at - 1 : at].isalnum() and not words[at + 1 : at + 2].isalnum()
        is_name = words[at] == "F" and words[at + 1 : at + 2] == "("
        is_kind = is_name or (words[at] in LEAVES and alone)
        parts.append(_expression(words[at], depth - 1, choose) if is_kind else words[at])
        at += 1
    return "".join(parts)
