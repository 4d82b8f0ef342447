"""Small files that would expand to large ones are refused in bounded memory and time."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import read_container, write_container
from lakelsm.format.manifest.avro_schemas import INDEX_MANIFEST_SCHEMA, MANIFEST_LIST_SCHEMA, MANIFEST_SCHEMA
from tests.format.avro.test_container import PACKERS, container, number
from tests.hostile.hostile_table import HostileTable
from tests.hostile.test_replaced_paths import record_manifest_sizes

#: Maximum memory of the driver for a table of this size, in bytes.
MEMORY = 128 << 20

SCHEMAS = {
    "base list": MANIFEST_LIST_SCHEMA,
    "delta list": MANIFEST_LIST_SCHEMA,
    "manifest": MANIFEST_SCHEMA,
    "index manifest": INDEX_MANIFEST_SCHEMA,
}


def zeros(codec: str, records: int) -> Callable[[str, bytes], bytes]:
    """One block of zeros, which decodes to more than ``records`` records with empty fields."""
    return lambda kind, found: container([(records, packed_zeros(codec))], codec, SCHEMAS[kind])


@cache
def packed_zeros(codec: str) -> bytes:
    return PACKERS[codec](bytes(MEMORY + (32 << 20)))


def copies(kind: str, found: bytes) -> bytes:
    """The file's records, repeated 200,000 times."""
    opened = read_container(found, kind)
    block = opened.blocks[0]
    times = 200 // block.count
    packed = PACKERS["zstandard"](bytes(block.data) * times)
    return container([(block.count * times, packed)] * 1000, "zstandard", SCHEMAS[kind])


def claims(count: int) -> Callable[[str, bytes], bytes]:
    """The file's bytes, with a record count of ``count``."""

    def made(kind: str, found: bytes) -> bytes:
        return container([(count, bytes(read_container(found, kind).blocks[0].data))], "null", SCHEMAS[kind])

    return made


def long_text(kind: str, found: bytes) -> bytes:
    """A text with a length of 2**60 bytes."""
    return container([(1, b"\4\4" + number(1 << 60) + b"abc")], "null", SCHEMAS[kind])


AVRO_BOMBS: dict[str, Callable[[str, bytes], bytes]] = {
    "zstandard": zeros("zstandard", 1000),
    "deflate": zeros("deflate", 10_000_000),
    "copies": copies,
    "10**15 records": claims(10**15),
    "-1 records": claims(-1),
    "long text": long_text,
}


@pytest.mark.parametrize("bomb", AVRO_BOMBS)
@pytest.mark.parametrize("kind", ["base list", "manifest", "index manifest"])
def test_an_avro_file_that_expands_without_bound_is_refused(
    make: Callable[[], HostileTable], kind: str, bomb: str
) -> None:
    table = make()
    path = table.kinds[kind]
    path.write_bytes(AVRO_BOMBS[bomb](kind, path.read_bytes()))
    if kind == "manifest":
        record_manifest_sizes(table.root)
    (error,) = refused_in_little_memory(table, "write" if kind == "index manifest" else "read")
    assert str(path) in str(error)


JSON_BOMBS: dict[str, Callable[[Path], str]] = {
    "deep lists": lambda path: '{"id": ' + "[" * 1_000_000,
    "deep objects": lambda path: '{"a":' * 200_000 + "1" + "}" * 200_000,
    "sound but for one key": lambda path: f'{path.read_text().rstrip()[:-1]}, "x": {"[" * 900}{"]" * 900}}}',
    "a number of a million digits": lambda path: json.dumps({**json.loads(path.read_bytes()), "id": 0}).replace(
        '"id": 0', '"id": ' + "9" * 1_000_000
    ),
    "an exponent": lambda path: '{"id": 1e999999999}',
    "a text that is no JSON": lambda path: "x" * 10_000_000,
}


@pytest.mark.parametrize("bomb", JSON_BOMBS)
@pytest.mark.parametrize("kind", ["schema", "snapshot", "tag"])
def test_a_json_file_without_bound_is_refused(make: Callable[[], HostileTable], kind: str, bomb: str) -> None:
    table = make()
    path = table.kinds[kind]
    path.write_text(JSON_BOMBS[bomb](path))
    (error,) = refused_in_little_memory(table, "read a tag" if kind == "tag" else "read")
    assert str(path) in str(error)


def test_a_type_of_a_schema_nested_without_end_is_refused(make: Callable[[], HostileTable]) -> None:
    for column_type in ("ARRAY<" * 20_000, "INT" + " ARRAY" * 20_000, "DECIMAL(" + "9" * 20_000 + ")"):
        table = make()
        path = table.kinds["schema"]
        document = json.loads(path.read_bytes())
        document["fields"][3]["type"] = column_type
        path.write_text(json.dumps(document))
        (error,) = refused_in_little_memory(table, "read")
        assert str(path) in str(error) and len(str(error)) < 1000


def test_a_record_repeated_a_million_times_is_refused_before_objects_are_made(
    make: Callable[[], HostileTable],
) -> None:
    """Only the counts of the file are wrong: real names need more bytes."""
    table = make()
    path = table.kinds["index manifest"]
    record = {"_VERSION": 1, "_KIND": 0, "_PARTITION": b"", "_BUCKET": 0, "_INDEX_TYPE": "HASH", "_FILE_NAME": "x"}
    sizes = {"_FILE_SIZE": 0, "_ROW_COUNT": 0, "_DELETIONS_VECTORS_RANGES": None}
    rows = ({**record, **sizes} for _ in range(400_000))
    path.write_bytes(write_container(INDEX_MANIFEST_SCHEMA, rows, "zstd", block_bytes=1 << 20))
    assert path.stat().st_size < 100_000
    (error,) = refused_in_little_memory(table, "write")
    assert "more than its bytes can contain" in str(error)


def refused_in_little_memory(table: HostileTable, *operations: str) -> list[CorruptTableError]:
    tracemalloc.start()
    try:
        errors = table.refused(*operations)
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    assert {type(error) for error in errors} == {CorruptTableError}
    return [error for error in errors if isinstance(error, CorruptTableError)]
