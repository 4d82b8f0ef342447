"""Hand-made manifest entries and the files of golden tables, for the tests of manifests."""

from __future__ import annotations

import copy
import io
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest

from lakelsm.format.avro.container import read_container, write_container
from lakelsm.format.manifest import decode_manifest
from lakelsm.format.manifest.avro_schemas import MANIFEST_SCHEMA
from lakelsm.format.manifest.columns import EntryColumns
from lakelsm.format.manifest.data_file_meta import EMPTY_STATS, DataFileMeta, SimpleStats
from lakelsm.format.manifest.entry import FileKind, ManifestEntry
from lakelsm.format.manifest.record import entry_to_record
from tests import golden_tables


def int_row(*values: int) -> bytes:
    """Return a BinaryRow, with arity, of BIGINT columns (at most 56)."""
    return struct.pack(">i", len(values)) + bytes(8) + struct.pack(f"<{len(values)}q", *values)


def file(name: str = "data-1-0.parquet", **changes: Any) -> DataFileMeta:
    values: dict[str, Any] = {
        "file_name": name,
        "file_size": 1000,
        "row_count": 10,
        "min_key": int_row(1),
        "max_key": int_row(9),
        "key_stats": EMPTY_STATS,
        "value_stats": EMPTY_STATS,
        "min_sequence_number": 0,
        "max_sequence_number": 9,
        "schema_id": 0,
        "level": 0,
    }
    return DataFileMeta(**{**values, **changes})


def entry(
    name: str = "data-1-0.parquet",
    kind: FileKind = FileKind.ADD,
    partition: bytes = int_row(),
    bucket: int = 0,
    total_buckets: int = 4,
    **changes: Any,
) -> ManifestEntry:
    return ManifestEntry(kind, partition, bucket, total_buckets, file=file(name, **changes))


def varied_entries(count: int, seed: int = 0) -> list[ManifestEntry]:
    """Return entries whose fields have all kinds of values: null, empty, short, long, negative, extreme."""
    chance = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.4 else value

    def number() -> int:
        return chance.choice([0, 1, -1, 63, 64, -65, 8191, 1 << 40, -(1 << 55), -(1 << 63)])

    def names() -> tuple[str, ...]:
        return tuple(chance.choice(["a", "prénom", "x" * 200, ""]) for _ in range(chance.choice([0, 1, 3])))

    def stats() -> SimpleStats:
        counts = tuple(maybe(number()) for _ in range(chance.choice([0, 2, 11])))
        return SimpleStats(chance.randbytes(chance.choice([12, 20, 300])), chance.randbytes(12), maybe(counts))

    return [
        entry(
            f"data-{number}-é.parquet",
            kind=chance.choice([FileKind.ADD, FileKind.DELETE]),
            partition=int_row(chance.randrange(5)),
            bucket=chance.choice([0, 1, 70000, -2]),
            total_buckets=chance.choice([4, -1, -2]),
            file_size=1 << chance.randrange(62),
            row_count=(1 << 62) + chance.randrange(1 << 30),
            min_key=chance.randbytes(chance.randrange(100)),
            max_key=chance.randbytes(20),
            key_stats=stats(),
            value_stats=stats(),
            min_sequence_number=-1,
            max_sequence_number=(1 << 63) - 1 - chance.randrange(3),
            schema_id=chance.randrange(300),
            level=chance.randrange(9),
            extra_files=names(),
            creation_time_millis=maybe(1_795_249_707_000 + number),
            delete_row_count=maybe(chance.randrange(1000)),
            embedded_index=maybe(chance.randbytes(chance.choice([0, 400]))),
            file_source=maybe(chance.randrange(2)),
            value_stats_cols=maybe(names()),
            external_path=maybe("file:/elsewhere/ü"),
            first_row_id=maybe(1 << 50),
            write_cols=maybe(names()),
            write_cols_sequences=maybe((1, -5, 1 << 40)),
        )
        for number in range(count)
    ]


def manifest_of_small_blocks(entries: list[ManifestEntry], schema: dict[str, Any] = MANIFEST_SCHEMA) -> bytes:
    """Return a manifest with about one entry in each block, so that it is decoded in lanes."""
    return write_container(schema, [entry_to_record(entry) for entry in entries], "zstandard", 16)


def in_lanes(*manifests: bytes) -> list[ManifestEntry]:
    """Decode in columns, even with few blocks."""
    columns = EntryColumns([read_container(data, "manifest-x") for data in manifests])
    return columns.entries(np.arange(columns.count))


def one_by_one(data: bytes) -> list[ManifestEntry]:
    """Decode with fastavro: a single block is never decoded in lanes."""
    records = list(fastavro.reader(io.BytesIO(data)))
    schema = read_container(data, "manifest-x").schema
    whole = write_container(schema, _plain(records), "null", 1 << 30)
    return decode_manifest(whole, "manifest-x")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return round(value.timestamp() * 1000) if hasattr(value, "timestamp") else value


def changed_schema(**fields: Any) -> dict[str, Any]:
    """Return the manifest schema with file fields removed (None) or added (a type)."""
    schema = copy.deepcopy(MANIFEST_SCHEMA)
    record = schema["fields"][-1]["type"]
    record["fields"] = [item for item in record["fields"] if item["name"] not in fields]
    added = [{"name": name, "type": kind} for name, kind in fields.items() if kind is not None]
    record["fields"] = added[:1] + record["fields"] + added[1:]
    return schema


def golden_files(root: Path, pattern: str) -> Iterator[tuple[str, Path]]:
    """Yield the files of all golden tables that match a glob, each with an id. Skip the test without golden tables."""
    if not golden_tables.available():
        pytest.skip(f"golden tables: {golden_tables.FOLDER} is not present")
    for version in golden_tables.VERSIONS:
        folder = golden_tables.unpack(version, root / version)
        for path in sorted(folder.glob(pattern)):
            yield f"{version}/{path.relative_to(folder)}", path
