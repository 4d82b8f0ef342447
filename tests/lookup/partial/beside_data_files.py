"""Lookup files beside the data files of a table, with the bytes that Java writes, without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.row.compacted_row import encode_compacted
from lakelsm.format.row.row_bytes import fixed_bytes, join_bytes, varint_bytes
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.partial import live_buckets
from lakelsm.lookup.partial.live_buckets import LiveBuckets
from lakelsm.lookup.partial.remote_lookup_file import ValueProcessor
from lakelsm.lookup.store.sort_block import BlockCompression, BlockForm
from lakelsm.lookup.store.sort_writer import SortFileWriter
from lakelsm.merge.merge_unit import RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.schema.system_columns import POSITION, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.snapshots.manifest_scan import read_live_entries
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField, contiguous

FORM = BlockForm(200, compression=BlockCompression.ZSTD, bloom_fpp=0.05)


def write_lookup_file(
    store: TableStore, file: RunFile, processor: ValueProcessor = ValueProcessor.VALUE, first_position: int = 0
) -> Path:
    """Write the lookup file of a data file as a compaction of Java does; return its name."""
    schema = store.schemas_of([file.schema_id])[file.schema_id]
    names = [*schema.field_names, SEQUENCE_NUMBER, VALUE_KIND]
    reader = RunReader(store.file_io, schema, schemas={schema.id: schema}, columns=names, memory_bytes=1 << 24)
    rows = pa.concat_tables([rows for _, rows in reader.open_file(file).batches(lambda: 1 << 22)])
    rows = rows.append_column(POSITION, pa.array(np.arange(len(rows)) + first_position))
    keys = [schema.field(name) for name in schema.trimmed_primary_keys]
    written = Path(file.path).parent / "unnamed"
    with written.open("wb") as out:
        writer = SortFileWriter(out, FORM)
        encoded = encode_compacted([rows[field.name] for field in keys], [field.type for field in keys])
        writer.put(contiguous(encoded), values_of(rows, processor, schema.fields))
        writer.finish()
    return written.rename(f"{file.path}.{written.stat().st_size}.{processor.value}.v1.lookup")


def values_of(rows: pa.Table, processor: ValueProcessor, fields: tuple[DataField, ...]) -> pa.BinaryArray:
    """Return the bytes of each row in a lookup file (docs/format.md 20.5)."""

    def numbers(name: str, size: str) -> pa.BinaryArray:
        return fixed_bytes(rows[name].to_numpy().astype(size), int(size[-1]))

    if processor is ValueProcessor.EMPTY:
        return pa.repeat(pa.scalar(b""), len(rows))
    if processor is ValueProcessor.POSITION:
        return varint_bytes(rows[POSITION].to_numpy())
    position = [numbers(POSITION, "<i8")] if processor is ValueProcessor.VALUE_AND_POSITION else []
    columns = encode_compacted([rows[field.name] for field in fields], [field.type for field in fields])
    return join_bytes([contiguous(columns), *position, numbers(SEQUENCE_NUMBER, "<i8"), numbers(VALUE_KIND, "<i1")])


def write_lookup_files(store: TableStore, processor: ValueProcessor = ValueProcessor.VALUE) -> None:
    """Write the lookup files of all data files of the newest snapshot that have none."""
    spec = LookupSpec(store, store.schema.primary_keys, ())
    for file in LiveBuckets.of(spec, store.snapshots.latest()).files:
        if not file.extra_files:
            write_lookup_file(store, file, processor)


@contextmanager
def named_by_manifests() -> Iterator[None]:
    """Make manifests name the lookup files beside data files, for lookups within the context."""

    def read(file_io: Any, paths: Any, *args: Any, **more: Any) -> list[ManifestEntry]:
        entries: Sequence[ManifestEntry] = read_live_entries(file_io, paths, *args, **more)
        beside = {path.name for path in Path(paths.root).rglob("*.lookup")}
        return [_naming(entry, [n for n in beside if n.startswith(f"{entry.file.file_name}.")]) for entry in entries]

    with patch.object(live_buckets, "read_live_entries", read):
        yield


def _naming(entry: ManifestEntry, names: Sequence[str]) -> ManifestEntry:
    return replace(entry, file=replace(entry.file, extra_files=(*entry.file.extra_files, *names)))


