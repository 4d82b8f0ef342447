"""The bytes of files of sort stores."""

from __future__ import annotations

import io
import struct

import pyarrow as pa

from lakelsm.lookup.store.sort_block import BlockCompression, BlockForm
from lakelsm.lookup.store.sort_writer import SortFileWriter

#: The bytes that Java writes for k1 -> v1, k2 -> v2, without compression and bloom filter.
WORKED = (
    "02 6b31 02 7631 02 6b32 02 7632 06000000 00 | 00 7174b0c5 | 02 6b32 02 0011 06000000 00 | 00 68471bb1 | "
    "0000000000000000 00000000 0000000000000000 1600000000000000 0b000000 61fd4e58"
).replace("|", "")


def written(
    entries: list[tuple[bytes, bytes]], form: BlockForm, digest: bytes | None = None, batches: int = 1
) -> bytes:
    file = io.BytesIO()
    writer = SortFileWriter(file, form, digest)
    for start in range(0, len(entries), -(-len(entries) // batches) or 1):
        part = entries[start : start + -(-len(entries) // batches)]
        keys, values = zip(*part)
        writer.put(pa.array(keys, pa.binary()), pa.array(values, pa.binary()))
    writer.finish()
    return file.getvalue()


def test_the_worked_example_has_its_74_bytes() -> None:
    found = written([(b"k1", b"v1"), (b"k2", b"v2")], BlockForm(65536))
    assert found.hex() == WORKED.replace(" ", "")
    assert len(found) == 74


def test_a_store_without_rows_has_an_empty_index_and_no_bloom_filter() -> None:
    found = written([], BlockForm(65536, bloom_fpp=0.05))
    assert found[:5].hex() == "0000000001"
    assert struct.unpack("<qiqqi", found[-36:-4]) == (0, 0, 0, 0, 5)


def test_the_file_does_not_depend_on_batches() -> None:
    entries = [(b"%06d" % number, b"v" * (number % 7)) for number in range(500)]
    for compression in BlockCompression:
        form = BlockForm(300, compression=compression, bloom_fpp=0.05)
        assert written(entries, form, batches=23) == written(entries, form)


def test_a_digest_follows_the_bloom_filter_and_changes_nothing_else() -> None:
    entries = [(b"%06d" % number, b"value") for number in range(100)]
    form = BlockForm(300, bloom_fpp=0.05)
    plain, with_digest = written(entries, form), written(entries, form, b"m" * 16)
    index = struct.unpack("<q", plain[-16:-8])[0]
    assert with_digest[:index] == plain[:index]
    assert with_digest[index : index + 16] == b"m" * 16
    assert with_digest[index + 20 : -36] == plain[index:-36]
