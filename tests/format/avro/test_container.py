"""Avro files that claim more than they hold: refused by name, in little memory and time."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.avro.container import Container, read_container, read_records, write_container
from lakelsm.format.avro.lanes import UnsupportedLayoutError, decode_columns

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ONE_FIELD = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "bytes"}]}
SYNC = bytes(range(16))
#: Far beyond what any allowance for a small file comes to.
BOMB = bytes(64 << 20)


def number(value: int) -> bytes:
    """Avro's zigzag number."""
    raw, out = (value << 1) ^ (value >> 63), bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])


def container(blocks: list[tuple[int, bytes]], codec: str = "null", schema: Any = ONE_FIELD) -> bytes:
    """A file of blocks, given as (claimed records, stored bytes)."""
    meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    entries = b"".join(number(len(part)) + part for pair in meta.items() for part in (pair[0].encode(), pair[1]))
    head = b"Obj\x01" + number(len(meta)) + entries + number(0) + SYNC
    return head + b"".join(number(count) + number(len(data)) + data + SYNC for count, data in blocks)


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(data) + packer.flush()


def snappy(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="snappy", asbytes=True)
    return packed + zlib.crc32(data).to_bytes(4, "big")


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "bzip2": bz2.compress,
    "deflate": deflated,
    "snappy": snappy,
    "xz": lzma.compress,
    "zstandard": zstd.compress,
}


@pytest.mark.parametrize("codec", [*PACKERS, "null", "zstd", "none"])
def test_every_codec_is_written_and_read(codec: str) -> None:
    records = [{"x": bytes([at % 7]) * at} for at in range(200)]
    data = write_container(ONE_FIELD, records, codec, 1000)
    made = read_container(data, "m")
    assert read_records(made) == records
    assert len(made.blocks) > 5
    name = {"zstd": "zstandard", "none": "null"}.get(codec, codec)
    assert b"avro.codec" + number(len(name)) + name.encode() in data


@pytest.mark.parametrize("codec", ["bzip2", "deflate", "xz", "null", "zstandard"])
def test_another_reader_of_avro_reads_what_is_written(codec: str) -> None:
    records = [{"x": bytes([at % 7]) * at} for at in range(200)]
    assert list(fastavro.reader(io.BytesIO(write_container(ONE_FIELD, records, codec)))) == records


def test_an_unknown_codec_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"'lz4': use zstd"):
        write_container(ONE_FIELD, [], "lz4")


@pytest.mark.parametrize("codec", PACKERS)
def test_a_damaged_block_is_refused_by_name(codec: str) -> None:
    block = bytearray(PACKERS[codec](b"some plain bytes that are long enough" * 9))
    for at in (0, len(block) // 2, len(block) - 1):
        damaged = bytes([*block[:at], block[at] ^ 0xFF, *block[at + 1 :]])
        with pytest.raises(CorruptTableError, match=r"^m is no readable Avro file"):
            read_records(read_container(container([(1, damaged)], codec), "m"))


@pytest.mark.parametrize("codec", PACKERS)
def test_a_block_that_expands_beyond_its_files_size_is_refused_in_little_memory(codec: str) -> None:
    # Snappy, which packs 21 to 1 at best, can only claim the size.
    packed = number(1 << 32)[:5] + bytes(100) if codec == "snappy" else PACKERS[codec](BOMB)
    data = container([(1, packed)], codec)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptTableError, match=r"^m is no readable Avro file: a block of \d+ bytes expands to more"):
            read_container(data, "m")
        assert tracemalloc.get_traced_memory()[1] < len(BOMB)
    finally:
        tracemalloc.stop()


def test_an_xz_block_cannot_ask_for_a_dictionary_of_any_size() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 1 << 30}]
    packed = lzma.compress(b"\2a", filters=filters)
    with pytest.raises(CorruptTableError, match=r"m is no readable Avro file: .*[Mm]emory"):
        read_container(container([(1, packed)], "xz"), "m")
    best = read_container(container([(1, lzma.compress(b"\2a", preset=9))], "xz"), "m")
    assert read_records(best) == [{"x": b"a"}]


def test_many_blocks_share_one_allowance() -> None:
    block = zstd.compress(bytes(4 << 20))
    with pytest.raises(CorruptTableError, match="expands to more than"):
        read_container(container([(1, block)] * 8, "zstandard"), "m")


def test_several_frames_of_one_block_share_it_too() -> None:
    frame = zstd.compress(bytes(4 << 20))
    with pytest.raises(CorruptTableError, match="expands to more than"):
        read_container(container([(1, frame * 8)], "zstandard"), "m")
    small = read_container(container([(2, zstd.compress(b"\2a") + zstd.compress(b"\2b"))], "zstandard"), "m")
    assert [record["x"] for record in read_records(small)] == [b"a", b"b"]


@pytest.mark.parametrize("codec", ["zstandard", "deflate", "bzip2", "xz"])
def test_a_compressed_block_that_is_cut_off_is_refused(codec: str) -> None:
    packed = PACKERS[codec](b"\x14" + b"0123456789")
    assert read_records(read_container(container([(1, packed)], codec), "m")) == [{"x": b"0123456789"}]
    with pytest.raises(CorruptTableError, match="m is no readable Avro file"):
        read_container(container([(1, packed[:-1])], codec), "m")


@pytest.mark.parametrize("count", [10**15, 2**62, -1, 2])
def test_a_block_cannot_claim_more_records_than_it_has_bytes(count: int) -> None:
    with pytest.raises(CorruptTableError, match="m is no readable Avro file"):
        read_container(container([(count, b"\0")]), "m")


def test_a_file_cannot_hold_more_records_than_it_has_bytes() -> None:
    data = container([(1_000_000, zstd.compress(bytes(1_000_000)))], "zstandard")
    with pytest.raises(CorruptTableError, match="a block claims 1000000 records, which is more than its bytes can hold"):
        read_container(data, "m")


def record(name: str, *types: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": f"f{i}", "type": t} for i, t in enumerate(types)]}


def doubling(levels: int) -> dict[str, Any]:
    """Each type has two members of the one before: 2 ** levels fields."""
    inner: Any = "long"
    for level in range(levels):
        name = f"n{level}"
        inner = record(name, inner, f"n{level - 1}" if level else "long")
    return inner  # type: ignore[no-any-return]


def nested(depth: int) -> Any:
    inner: Any = "long"
    for _ in range(depth):
        inner = {"type": "array", "items": inner}
    return inner


HOSTILE_SCHEMAS: dict[str, Any] = {
    "contains itself": record("r", ["null", "r"]),
    "by way of another": record("r", record("a", ["null", {"type": "array", "items": "x.r"}])),
    "array of null": record("r", {"type": "array", "items": "null"}),
    "map of empty records": record("r", {"type": "map", "values": record("e")}),
    "array of fixed(0)": record("r", {"type": "array", "items": {"type": "fixed", "name": "z", "size": 0}}),
    "doubling": doubling(18),
    "deep": record("r", nested(500)),
    "many fields": record("r", *["long"] * 20_000),
    "unknown name": record("r", "nothing"),
    "no type": record("r", 5),
    "no schema": [],
    "a number": 7,
}


@pytest.mark.parametrize("name", HOSTILE_SCHEMAS)
def test_a_schema_that_would_not_let_the_decoder_end_is_refused(name: str) -> None:
    with pytest.raises(CorruptTableError, match="m is no readable Avro file"):
        read_records(read_container(container([(1, b"\2" * 2000)], schema=HOSTILE_SCHEMAS[name]), "m"))


def test_a_schema_text_nested_without_end_is_refused() -> None:
    data = container([(1, b"\0")]).replace(json.dumps(ONE_FIELD).encode(), b"[" * len(json.dumps(ONE_FIELD)))
    with pytest.raises(CorruptTableError, match="m is no readable Avro file"):
        read_container(data, "m")


def test_a_type_that_is_named_again_after_it_has_ended_is_no_recursion() -> None:
    schema = record("r", record("stats", "long"), "stats")
    assert read_records(read_container(container([(1, b"\2\4")], schema=schema), "m")) == [
        {"f0": {"f0": 1}, "f1": {"f0": 2}}
    ]


def test_lanes_leave_long_arrays_to_fastavro() -> None:
    schema = record("r", {"type": "array", "items": "long"})
    long = number(300_000) + b"\0" * 300_000 + number(0)
    opened = read_container(container([(1, long), (1, b"\0")], schema=schema), "m")
    with pytest.raises(UnsupportedLayoutError, match="f0 has a long array"):
        decode_columns([opened], ["f0"])
    assert [len(found["f0"]) for found in read_records(opened)] == [300_000, 0]


def test_what_other_writers_write_is_read() -> None:
    """A block of Java's size, in every codec, at a high but possible rate of compression."""
    out = io.BytesIO()
    rows: list[dict[str, Any]] = [{"x": bytes(2000) + key.to_bytes(8, "big")} for key in range(3000)]
    for codec in ("null", "deflate", "zstandard"):
        out.seek(0)
        out.truncate()
        fastavro.writer(out, ONE_FIELD, rows, codec=codec, sync_interval=64_000)
        opened = read_container(out.getvalue(), "m")
        assert isinstance(opened, Container) and read_records(opened) == rows
