"""64-bit bitmaps in the layout of Java's class Roaring64Bitmap: the values of aggregate function `rbm64`.

No Python library reads this layout; they read the portable one, which Java uses only for another class. From
RoaringBitmap 1.2 (which Paimon bundles) to 1.6 it is, little endian:

    0x00 for the empty bitmap, else 0x01, tree, containers
    tree       u64 number of leaves, nodes in depth-first order, children by ascending byte
    node       u8 kind, u16 number of children, u8 length of prefix, prefix, body; a leaf has neither children nor prefix
    leaf       the upper 48 bits of the numbers (big endian), u64 index of their container
    containers u32 number of arrays; of each 0xFE, u32 length, and a container at each index; then u64 number of
               containers, u32 last array, u32 last index in it
    container  0x00 for none, else 0x01, u8 kind, u32 cardinality, body: that of the portable layout

The nodes form an adaptive radix tree. A node of up to 4 or 16 children lists their bytes. A node of up to 48 children
has the index of a child for each byte, and one of up to 256 has a bit for each byte. Leaves contain the whole key, so
only writing needs the other nodes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from pyroaring import BitMap64

# All of these are persisted: do not change.
_EMPTY, _NOT_EMPTY = b"\x00", b"\x01"
_NODE4, _NODE16, _NODE48, _NODE256, _LEAF = range(5)
_NODE_BODY = {_NODE4: 4, _NODE16: 16, _NODE48: 256, _NODE256: 32, _LEAF: 0}
_NOT_TRIMMED = 0xFE
_RUNS, _BITS, _ARRAY = range(3)
_BITS_BYTES = 8192
_ARRAY_LIMIT = 4096
_MAX_CARDINALITY = 65536
_KEY_BYTES = 6
#: The portable layout: cookies with and without runs, and the number of containers from which a bitmap with runs has
#: offsets.
_COOKIE_RUNS, _COOKIE_PLAIN, _OFFSETS_FROM = 12347, 12346, 4


@dataclass(frozen=True)
class _Container:
    """Numbers that share their upper 48 bits; the body has their lower 16 bits."""

    key: bytes
    kind: int
    cardinality: int
    body: bytes


def decode_roaring64(data: bytes) -> BitMap64:
    """Return the bitmap that Java's ``Roaring64Bitmap.serialize`` wrote. Numbers are unsigned.

    Raises ValueError for other bytes.
    """
    cursor = _ByteReader(data)
    tag = cursor.take(1)
    if tag == _EMPTY:
        return BitMap64()
    if tag != _NOT_EMPTY:
        raise ValueError(f"the first byte is {tag[0]}, not 0 or 1")
    indexes = _read_leaves(cursor)
    containers = _read_containers(cursor)
    lost = set(indexes.values()) - set(containers)
    if lost:
        raise ValueError(f"container {min(lost)} is missing")
    found = [_Container(key, *containers[index]) for key, index in sorted(indexes.items())]
    return BitMap64.deserialize(_portable([container for container in found if container.cardinality]))


def encode_roaring64(bitmap: BitMap64) -> bytes:
    """Return the bytes that Java's ``Roaring64Bitmap.deserialize`` reads as the same bitmap. Runs are compressed."""
    if not bitmap:
        return _EMPTY
    bitmap.run_optimize()
    containers = _split(bytes(bitmap.serialize()))
    keys = [container.key for container in containers]
    parts = [_NOT_EMPTY, struct.pack("<Q", len(keys)), _tree(keys, 0, 0)]
    parts.append(struct.pack("<IBI", 1, _NOT_TRIMMED, len(keys)))
    for container in containers:
        parts += [struct.pack("<BBI", 1, container.kind, container.cardinality), container.body]
    parts.append(struct.pack("<QII", len(keys), 0, len(keys) - 1))
    return b"".join(parts)


class _ByteReader:
    """Reads bytes in order. Raises ValueError at the end of the data."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise ValueError(f"{size} bytes are missing at byte {self._at} of {len(self._data)}")
        self._at += size
        return found

    def skip(self, size: int) -> None:
        self.take(size)

    def numbers(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))


def _read_leaves(cursor: _ByteReader) -> dict[bytes, int]:
    """Return the container index of each key. The shape of the tree is ignored: leaves contain whole keys."""
    (leaves,) = cursor.numbers("<Q")
    found: dict[bytes, int] = {}
    open_nodes = 1
    while open_nodes:
        kind, children, prefix = cursor.numbers("<BHB")
        if kind not in _NODE_BODY:
            raise ValueError(f"a node has the unknown kind {kind}")
        cursor.skip(prefix + _NODE_BODY[kind])
        open_nodes -= 1
        if kind == _LEAF:
            key = cursor.take(_KEY_BYTES)
            (found[key],) = cursor.numbers("<Q")
        else:
            open_nodes += children
    if len(found) != leaves:
        raise ValueError(f"the tree has {len(found)} keys instead of {leaves}")
    return found


def _read_containers(cursor: _ByteReader) -> dict[int, tuple[int, int, bytes]]:
    """Return (kind, cardinality, body) of each container by its index."""
    found: dict[int, tuple[int, int, bytes]] = {}
    (arrays,) = cursor.numbers("<I")
    for array in range(arrays):
        _, length = cursor.numbers("<BI")
        for at in range(length):
            if cursor.take(1) != b"\x00":
                found[array << 32 | at] = _read_container(cursor)
    cursor.skip(16)
    return found


def _read_container(cursor: _ByteReader) -> tuple[int, int, bytes]:
    kind, cardinality = cursor.numbers("<BI")
    if kind not in (_RUNS, _BITS, _ARRAY) or cardinality > _MAX_CARDINALITY:
        raise ValueError(f"a container has kind {kind} and {cardinality} numbers")
    body = _read_body(cursor, kind, cardinality)
    if kind == _BITS and cardinality <= _ARRAY_LIMIT:
        # The portable layout distinguishes arrays and bits only by the cardinality.
        lows = np.flatnonzero(np.unpackbits(np.frombuffer(body, np.uint8), bitorder="little"))
        return _ARRAY, len(lows), lows.astype("<u2").tobytes()
    return kind, cardinality, body


def _read_body(cursor: _ByteReader, kind: int, cardinality: int) -> bytes:
    if kind == _RUNS:
        count = cursor.take(2)
        return count + cursor.take(4 * int.from_bytes(count, "little"))
    return cursor.take(_BITS_BYTES if kind == _BITS else 2 * cardinality)


# ---- the tree ----


def _tree(keys: Sequence[bytes], depth: int, index: int) -> bytes:
    """Return the node of sorted keys that agree before ``depth``; ``index`` is that of the first key's container."""
    if len(keys) == 1:
        return struct.pack("<BHB", _LEAF, 0, 0) + keys[0] + struct.pack("<Q", index)
    branch = next(at for at in range(depth, _KEY_BYTES) if keys[0][at] != keys[-1][at])
    prefix = keys[0][depth:branch]
    children, labels = [], bytearray()
    for label, members in groupby(keys, key=lambda key: key[branch]):
        below = list(members)
        labels.append(label)
        children.append(_tree(below, branch + 1, index))
        index += len(below)
    kind, body = _node(bytes(labels))
    return b"".join([struct.pack("<BHB", kind, len(labels), len(prefix)), prefix, body, *children])


def _node(labels: bytes) -> tuple[int, bytes]:
    """Return kind and body of a node with these children. Java stores them in words with the first byte on top."""
    if len(labels) <= 4:
        return _NODE4, labels.ljust(4, b"\x00")[::-1]
    if len(labels) <= 16:
        return _NODE16, _words(labels.ljust(16, b"\x00"))
    if len(labels) <= 48:
        child_indexes = bytearray(b"\xff" * 256)
        for index, label in enumerate(labels):
            child_indexes[label] = index
        return _NODE48, _words(bytes(child_indexes))
    bits = np.zeros(256, dtype=np.uint8)
    bits[list(labels)] = 1
    return _NODE256, np.packbits(bits, bitorder="little").tobytes()


def _words(data: bytes) -> bytes:
    """Reverse each group of eight bytes."""
    return np.frombuffer(data, np.uint8).reshape(-1, 8)[:, ::-1].tobytes()


# ---- the portable layout ----


def _portable(containers: Sequence[_Container]) -> bytes:
    """Return containers, sorted by key, in the portable layout: a 32-bit bitmap for each upper half."""
    maps = [
        (high, _portable32(list(members))) for high, members in groupby(containers, key=lambda found: found.key[:4])
    ]
    parts = [struct.pack("<Q", len(maps))]
    for high, data in maps:
        parts += [high[::-1], data]
    return b"".join(parts)


def _portable32(containers: Sequence[_Container]) -> bytes:
    count = len(containers)
    runs = [container.kind == _RUNS for container in containers]
    if any(runs):
        head = struct.pack("<HH", _COOKIE_RUNS, count - 1) + np.packbits(runs, bitorder="little").tobytes()
    else:
        head = struct.pack("<II", _COOKIE_PLAIN, count)
    for container in containers:
        head += container.key[:3:-1] + struct.pack("<H", container.cardinality - 1)
    offsets = b""
    if count >= _OFFSETS_FROM or not any(runs):
        start = len(head) + 4 * count
        sizes = np.array([0, *(len(container.body) for container in containers[:-1])])
        offsets = (start + np.cumsum(sizes)).astype("<u4").tobytes()
    return b"".join([head, offsets, *(container.body for container in containers)])


def _split(portable: bytes) -> list[_Container]:
    """Return the containers of the portable layout, in key order."""
    cursor = _ByteReader(portable)
    (maps,) = cursor.numbers("<Q")
    return [found for _ in range(maps) for found in _split32(cursor, cursor.take(4)[::-1])]


def _split32(cursor: _ByteReader, high: bytes) -> list[_Container]:
    cookie, more = cursor.numbers("<HH")
    runs: set[int] = set()
    if cookie == _COOKIE_RUNS:
        count = more + 1
        flags = np.frombuffer(cursor.take((count + 7) // 8), np.uint8)
        runs = set(np.flatnonzero(np.unpackbits(flags, count=count, bitorder="little")).tolist())
    else:
        (count,) = cursor.numbers("<I")
    heads = [cursor.numbers("<HH") for _ in range(count)]
    if count >= _OFFSETS_FROM or cookie != _COOKIE_RUNS:
        cursor.skip(4 * count)
    found = []
    for at, (low, less_one) in enumerate(heads):
        kind = _RUNS if at in runs else _ARRAY if less_one < _ARRAY_LIMIT else _BITS
        body = _read_body(cursor, kind, less_one + 1)
        found.append(_Container(high + struct.pack(">H", low), kind, less_one + 1, body))
    return found
