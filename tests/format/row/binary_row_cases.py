"""Rows with the bytes and hashes of Java Paimon (docs/format.md 8 and 9), and a slow reference implementation."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import date, datetime, timezone
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from lakelsm.format.manifest import ManifestEntry, decode_manifest
from lakelsm.types import AtomicType, parse_type, to_arrow
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP
from tests.nano_times import times_of_nanos

WIDE = Context(prec=60)

Case = tuple[tuple[str, ...], tuple[Any, ...], str]

NANO_2024 = 1_704_067_200_123_456_789
LAST_MICRO = datetime(1969, 12, 31, 23, 59, 59, 999999)
FIRST_2024 = datetime(2024, 1, 1, 0, 0, 0, 123456)
HELLO = "0b00000018000000 68656c6c6f20776f 726c640000000000"

# Types, values, hex of the row without its arity (docs/format.md 8.4 has some of them).
EXAMPLES: list[Case] = [
    (("INT",), (1,), "0000000000000000 0100000000000000"),
    (("INT",), (-1,), "0000000000000000 ffffffff00000000"),
    (("INT",), (None,), "0001000000000000 0000000000000000"),
    (("BIGINT",), (1099511627776,), "0000000000000000 0000000000010000"),
    (("BIGINT",), (-1,), "0000000000000000 ffffffffffffffff"),
    (("STRING",), ("",), "0000000000000000 0000000000000080"),
    (("STRING",), ("abc",), "0000000000000000 6162630000000083"),
    (("STRING",), ("abcdefg",), "0000000000000000 6162636465666787"),
    (("STRING",), ("abcdefgh",), "0000000000000000 0800000010000000 6162636465666768"),
    (("STRING",), ("abcdefghi",), "0000000000000000 0900000010000000 6162636465666768 6900000000000000"),
    (("STRING",), ("é",), "0000000000000000 c3a9000000000082"),
    (("INT", "STRING"), (1, "a"), "0000000000000000 0100000000000000 6100000000000081"),
    (("INT", "STRING"), (1, "hello world"), f"0000000000000000 0100000000000000 {HELLO}"),
    (("INT", "STRING"), (None, "a"), "0001000000000000 0000000000000000 6100000000000081"),
    (("INT", "STRING"), (1, None), "0002000000000000 0100000000000000 0000000000000000"),
    (
        ("STRING", "STRING"),
        ("hello world", "paimon-table"),
        "0000000000000000 0b00000018000000 0c00000028000000 68656c6c6f20776f 726c640000000000"
        "7061696d6f6e2d74 61626c6500000000",
    ),
    (
        ("BIGINT", "STRING", "INT"),
        (7, "abcdefgh", 3),
        "0000000000000000 0700000000000000 0800000020000000 0300000000000000 6162636465666768",
    ),
    (("DECIMAL(10,2)",), (Decimal("123.45"),), "0000000000000000 3930000000000000"),
    (("DECIMAL(10,2)",), (Decimal("-123.45"),), "0000000000000000 c7cfffffffffffff"),
    (
        ("DECIMAL(20,2)",),
        (Decimal("123.45"),),
        "0000000000000000 0200000010000000 3039000000000000 0000000000000000",
    ),
    (
        ("DECIMAL(20,2)",),
        (Decimal("-123.45"),),
        "0000000000000000 0200000010000000 cfc7000000000000 0000000000000000",
    ),
    (("DECIMAL(20,2)",), (None,), "0001000000000000 0000000010000000 0000000000000000 0000000000000000"),
    (
        ("DECIMAL(38,0)",),
        (Decimal(10**37),),
        "0000000000000000 1000000010000000 0785ee10d5da46d9 00f436a000000000",
    ),
    (("DATE",), (date(2024, 1, 1),), "0000000000000000 0b4d000000000000"),
    (("TIME(3)",), (3_600_123,), "0000000000000000 fbee360000000000"),
    (("TIMESTAMP(3)",), (FIRST_2024.replace(microsecond=123000),), "0000000000000000 7bf451c28c010000"),
    (("TIMESTAMP(6)",), (FIRST_2024,), "0000000000000000 40f5060010000000 7bf451c28c010000"),
    (("TIMESTAMP(9)",), (NANO_2024,), "0000000000000000 55f8060010000000 7bf451c28c010000"),
    (("TIMESTAMP(6)",), (LAST_MICRO,), "0000000000000000 583e0f0010000000 ffffffffffffffff"),
    (("TIMESTAMP(6)",), (None,), "0001000000000000 0000000010000000 0000000000000000"),
    (("VARBINARY(8)",), (bytes(range(1, 9)),), "0000000000000000 0800000010000000 0102030405060708"),
]

_ALPHABET = "abcdefghijklmnopqrst"
_ALPHABET_HASHES = [
    302122119, 943281246, -425866811, -101922419, -1227180750, -1730739295, 1284425709, -1431907323,
    -843760178,
    890550442, 1455944208, -1911361823, 191150155, -1777350241, 763526520, -414567690, -712211938, 576074594,
    -378822776, 397729086, 352247557,
]  # fmt: skip

# Types, values, hash (docs/format.md 9.4 has some of them; the buckets of 4 and 16 follow in BUCKETS).
HASHES: list[tuple[tuple[str, ...], tuple[Any, ...], int]] = [
    (("INT",), (0,), -300363099),
    (("INT",), (1,), 1465514398),
    (("INT",), (2,), 1340390384),
    (("INT",), (-1,), 1133687267),
    (("INT",), (2147483647,), -1125657321),
    (("INT",), (-2147483648,), 916225219),
    (("BIGINT",), (1,), 1465514398),
    (("BIGINT",), (-1,), -821098432),
    (("BIGINT",), (1099511627776,), 895061894),
    (("BIGINT",), (9223372036854775807,), -1566569095),
    *((("STRING",), (_ALPHABET[:n],), value) for n, value in enumerate(_ALPHABET_HASHES)),
    (("STRING",), ("é",), -1531579217),
    (("STRING",), ("中文数据",), 501909966),
    (("INT",), (None,), -1748325344),
    (("STRING",), (None,), -1748325344),
    (("INT", "STRING"), (1, "a"), -948407462),
    (("INT", "STRING"), (1, "hello world"), 639486570),
    (("INT", "STRING"), (None, "a"), -193201184),
    (("STRING", "STRING"), ("hello world", "paimon-table"), -1229613742),
    (("BIGINT", "STRING", "INT"), (7, "abcdefgh", 3), 612921866),
    (("BOOLEAN",), (True,), 1465514398),
    (("TINYINT",), (-1,), 2004758659),
    (("SMALLINT",), (-1,), 2143727727),
    (("FLOAT",), (1.5,), -173842779),
    (("DOUBLE",), (-0.0,), 302122119),
    (("DATE",), (date(2024, 1, 1),), -1439008885),
    (("TIME(3)",), (3_600_123,), -1268698227),
    (("DECIMAL(10,2)",), (Decimal("123.45"),), 767607022),
    (("DECIMAL(10,2)",), (Decimal("-123.45"),), 280263423),
    (("DECIMAL(20,2)",), (Decimal("123.45"),), -118192725),
    (("DECIMAL(20,2)",), (Decimal("-123.45"),), -605613085),
    (("DECIMAL(38,0)",), (Decimal(10**37),), -237489491),
    (("DECIMAL(20,2)",), (None,), -1380280760),
    (("TIMESTAMP(3)",), (FIRST_2024.replace(microsecond=123000),), 985649424),
    (("TIMESTAMP(6)",), (FIRST_2024,), 941252157),
    (("TIMESTAMP(9)",), (NANO_2024,), -1093231341),
    (("TIMESTAMP(6) WITH LOCAL TIME ZONE",), (FIRST_2024.replace(tzinfo=timezone.utc),), 941252157),
    (("TIMESTAMP(6)",), (None,), -340882661),
    (("TIMESTAMP(3)",), (LAST_MICRO.replace(microsecond=999000),), -821098432),
    (("TIMESTAMP(6)",), (LAST_MICRO,), 1236894319),
    (("VARBINARY(8)",), (bytes(range(1, 9)),), -703675362),
    (("STRING", "INT"), ("2024-01-01", 1), -1309492846),
]

# The buckets of the keys, in the order of HASHES.
BUCKETS_OF_4 = [
    3, 2, 0, 3, 1, 3, 2, 0, 2, 3,
    3, 2, 3, 3, 2, 3, 1, 3, 2, 2, 0, 3, 3, 1, 0, 2, 2, 2, 0, 2, 1,
    1, 2, 0, 0, 2, 2, 0, 2, 2, 2, 3, 3, 3, 3, 1, 3, 2, 3, 1, 1, 3, 0, 0, 1, 1, 1, 1, 0, 3, 2, 2,
]  # fmt: skip
BUCKETS_OF_16 = [
    11, 14, 0, 3, 9, 3, 14, 0, 6, 7,
    7, 14, 11, 3, 14, 15, 13, 11, 2, 10, 0, 15, 11, 1, 8, 10, 2, 2, 8, 14, 5,
    1, 14, 0, 0, 6, 10, 0, 14, 10, 14, 3, 15, 11, 7, 5, 3, 14, 15, 5, 13, 3, 8, 0, 13, 13, 13, 5, 0,
    15, 2, 14,
]  # fmt: skip


def atomic_types(names: Sequence[str]) -> list[AtomicType]:
    parsed = [parse_type(name) for name in names]
    assert all(isinstance(data_type, AtomicType) for data_type in parsed)
    return parsed  # type: ignore[return-value]


def java_entries(table: Path) -> list[ManifestEntry]:
    """Return all entries of all manifests in a table's directory."""
    paths = [path for path in (table / "manifest").glob("manifest-*") if "-list-" not in path.name]
    return [entry for path in sorted(paths) for entry in decode_manifest(path.read_bytes(), path.name)]


def single_rows(names: Sequence[str], values: Sequence[Any]) -> tuple[list[pa.Array], list[AtomicType]]:
    """Return one row as arrays of one value each."""
    types = atomic_types(names)
    kinds = [to_arrow(data_type) for data_type in types]
    arrays = [
        times_of_nanos([value]) if kind == NANO_TIMESTAMP else pa.array([value], kind)
        for value, kind in zip(values, kinds, strict=True)
    ]
    return arrays, types


def reference_row(values: Sequence[Any], types: Sequence[AtomicType]) -> bytes:
    """Return the row's bytes without arity, field by field; temporal values are integers in `to_arrow` units."""
    header = bytearray((len(types) + 8 + 63) // 64 * 8)
    slots: list[bytes] = []
    variable = bytearray()
    base = len(header) + 8 * len(types)
    for index, (value, data_type) in enumerate(zip(values, types, strict=True)):
        if value is None:
            header[(index + 8) // 8] |= 1 << (index % 8)
        slot, chunk = _reference_field(value, data_type, base + len(variable))
        slots.append(slot)
        variable += chunk
    return bytes(header) + b"".join(slots) + bytes(variable)


def _reference_field(value: Any, data_type: AtomicType, offset: int) -> tuple[bytes, bytes]:
    root, precision = data_type.root, data_type.precision or 0
    if root == "DECIMAL" and precision > 18:
        unscaled = None if value is None else int(value.scaleb(data_type.scale or 0, WIDE))
        size = 0 if unscaled is None else 1
        while unscaled is not None and not -(1 << (8 * size - 1)) <= unscaled < 1 << (8 * size - 1):
            size += 1
        data = b"" if unscaled is None else unscaled.to_bytes(size, "big", signed=True)
        return struct.pack("<II", size, offset), data.ljust(16, b"\0")
    if root.startswith("TIMESTAMP") and precision > 3:
        per_milli = 1_000_000 if precision > 6 else 1_000
        millis, rest = (0, 0) if value is None else divmod(value, per_milli)
        return struct.pack("<II", rest * (1_000_000 // per_milli), offset), struct.pack("<q", millis)
    if value is None:
        return bytes(8), b""
    if root in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
        data = value.encode() if isinstance(value, str) else value
        if len(data) <= 7:
            return data.ljust(7, b"\0") + bytes([0x80 | len(data)]), b""
        return struct.pack("<II", len(data), offset), data.ljust((len(data) + 7) // 8 * 8, b"\0")
    if root == "DECIMAL":
        return struct.pack("<q", int(value.scaleb(data_type.scale or 0, WIDE))), b""
    codes = {"BOOLEAN": "<?", "TINYINT": "<b", "SMALLINT": "<h", "FLOAT": "<f", "DOUBLE": "<d"}
    wide = root == "BIGINT" or root.startswith("TIMESTAMP")
    return struct.pack(codes.get(root, "<q" if wide else "<i"), value).ljust(8, b"\0"), b""


def reference_hash(row: bytes) -> int:
    full = 0xFFFFFFFF
    state = 42
    for (word,) in struct.iter_unpack("<I", row):
        word = word * 0xCC9E2D51 & full
        word = (word << 15 | word >> 17) & full
        state ^= word * 0x1B873593 & full
        state = (state << 13 | state >> 19) & full
        state = (state * 5 + 0xE6546B64) & full
    state ^= len(row)
    state = (state ^ state >> 16) * 0x85EBCA6B & full
    state = (state ^ state >> 13) * 0xC2B2AE35 & full
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


TYPE_NAMES = [
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(9, 2)", "DECIMAL(18, 0)",
    "DECIMAL(19, 5)", "DECIMAL(38, 10)", "CHAR(3)", "STRING", "BINARY(2)", "BYTES", "DATE",
    "TIME(0)", "TIME(3)",
    "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP(9) WITH LOCAL TIME ZONE",
]  # fmt: skip

_MILLIS_OF_YEARS = 200_000 * 366 * 86_400_000


def plain_values(data_type: AtomicType) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a type; temporal values are integers in the unit of ``to_arrow``."""
    root = data_type.root
    bits = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "DATE": 32, "BIGINT": 64}
    if root in bits:
        return st.integers(-(1 << (bits[root] - 1)), (1 << (bits[root] - 1)) - 1)
    if root == "BOOLEAN":
        return st.booleans()
    if root in ("FLOAT", "DOUBLE"):
        return st.floats(width=32 if root == "FLOAT" else 64, allow_nan=False)
    if root == "DECIMAL":
        digits = data_type.precision or 0
        edges = [s * 2 ** (8 * k - 1) - d for k in range(1, 17) for s in (1, -1) for d in (-1, 0, 1)]
        whole = st.integers(-(10**digits) + 1, 10**digits - 1) | st.sampled_from(
            [edge for edge in edges if abs(edge) < 10**digits]
        )
        return whole.map(lambda unscaled: Decimal(unscaled).scaleb(-(data_type.scale or 0), WIDE))
    if root in ("CHAR", "VARCHAR"):
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    if root in ("BINARY", "VARBINARY"):
        return st.binary(max_size=30)
    if root == "TIME":
        return st.integers(0, 86_399_999)
    if (data_type.precision or 0) > 6:
        return st.integers(-_MILLIS_OF_YEARS * 1_000_000, _MILLIS_OF_YEARS * 1_000_000)
    scale = 1_000 if (data_type.precision or 0) > 3 else 1
    return st.integers(-_MILLIS_OF_YEARS * scale, _MILLIS_OF_YEARS * scale)


def arrow_column(values: Sequence[Any], data_type: AtomicType) -> pa.Array:
    """Return the values of :func:`plain_values` as an array of ``to_arrow(data_type)``."""
    arrow_type = to_arrow(data_type)
    if arrow_type == NANO_TIMESTAMP:
        return times_of_nanos(values)
    if pa.types.is_temporal(arrow_type):
        width = pa.int32() if arrow_type.bit_width == 32 else pa.int64()
        return pa.array(values, width).view(arrow_type)
    return pa.array(values, arrow_type)


@st.composite
def rows_of_types(draw: st.DrawFn, max_fields: int = 6) -> tuple[list[AtomicType], list[tuple[Any, ...]]]:
    """Draw some types and rows of them, with nulls."""
    types = atomic_types(draw(st.lists(st.sampled_from(TYPE_NAMES), min_size=1, max_size=max_fields)))
    row = st.tuples(*(st.none() | plain_values(data_type) for data_type in types))
    return types, draw(st.lists(row, min_size=1, max_size=20))
