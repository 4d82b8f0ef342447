"""Avro files that claim more than they contain are refused by name, with little memory and time."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.avro.container import Container, read_container, read_records, write_container
from tests.format.avro.avro_files import ONE_FIELD, PACKERS, container, number


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
def test_another_avro_reader_reads_written_files(codec: str) -> None:
    records = [{"x": bytes([at % 7]) * at} for at in range(200)]
    assert list(fastavro.reader(io.BytesIO(write_container(ONE_FIELD, records, codec)))) == records


def test_equal_records_give_equal_bytes_and_others_another_sync_marker() -> None:
    first, again, other = (write_container(ONE_FIELD, [{"x": value}], "zstd") for value in (b"x", b"x", b"y"))
    assert first == again
    assert first[-16:] != other[-16:]


def test_an_unknown_codec_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"'lz4' is not supported. Use 'zstd'"):
        write_container(ONE_FIELD, [], "lz4")


def test_the_size_limit_is_for_all_blocks_of_a_file() -> None:
    block = PACKERS["zstandard"](bytes(4 << 20))
    with pytest.raises(CorruptTableError, match="expands to more than"):
        read_container(container([(1, block)] * 8, "zstandard"), "m")


@pytest.mark.parametrize("count", [10**15, 2**62, -1, 2])
def test_a_block_cannot_claim_more_records_than_it_has_bytes(count: int) -> None:
    with pytest.raises(CorruptTableError, match="m is not a readable Avro file"):
        read_container(container([(count, b"\0")]), "m")


def test_a_file_cannot_claim_more_records_than_its_bytes_allow() -> None:
    data = container([(1_000_000, PACKERS["zstandard"](bytes(1_000_000)))], "zstandard")
    with pytest.raises(CorruptTableError, match="a block claims 1000000 records, more than its bytes can contain"):
        read_container(data, "m")


def test_a_schema_text_with_endless_nesting_is_refused() -> None:
    data = container([(1, b"\0")]).replace(json.dumps(ONE_FIELD).encode(), b"[" * len(json.dumps(ONE_FIELD)))
    with pytest.raises(CorruptTableError, match="m is not a readable Avro file"):
        read_container(data, "m")


def test_blocks_of_other_writers_are_read() -> None:
    """Every codec reads a block of Java's size with a high but possible compression ratio."""
    out = io.BytesIO()
    rows: list[dict[str, Any]] = [{"x": bytes(2000) + key.to_bytes(8, "big")} for key in range(3000)]
    for codec in ("null", "deflate", "zstandard"):
        out.seek(0)
        out.truncate()
        fastavro.writer(out, ONE_FIELD, rows, codec=codec, sync_interval=64_000)
        opened = read_container(out.getvalue(), "m")
        assert isinstance(opened, Container) and read_records(opened) == rows
