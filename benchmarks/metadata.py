"""Synthetic metadata of a large table: snapshot, manifests and schema of N data files that do not exist."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.config import BenchConfig
from benchmarks.workspace import build
from lakelsm.format.file_names import CommitFileNames
from lakelsm.format.manifest import encode_manifest
from lakelsm.format.manifest.data_file_meta import DataFileMeta, FileSource, SimpleStats
from lakelsm.format.manifest.entry import FileKind, ManifestEntry
from lakelsm.format.manifest.manifest_list import ManifestFileMeta, encode_manifest_list, summarize
from lakelsm.format.paths import TablePaths
from lakelsm.format.row.binary_row import encode_row, encode_rows, with_arity
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.types import parse_type

PARTITIONS = 50
BUCKETS = 4
_ENTRIES_A_MANIFEST = 5_000
ROWS_A_FILE = 100_000
_UUID = "5f0d8a52-6c5e-4b42-9f3e-000000000001"
TIME_MILLIS = 1_767_225_600_000
_COLUMNS = (
    ("p", "INT NOT NULL"),
    ("id", "BIGINT NOT NULL"),
    ("account", "INT"),
    ("quantity", "INT"),
    ("price", "DOUBLE"),
    ("status", "STRING"),
    ("note", "STRING"),
    ("day", "DATE"),
    ("event_time", "TIMESTAMP(6)"),
    ("amount", "DECIMAL(12, 2)"),
)
_TYPES = [parse_type(text) for _, text in _COLUMNS]
PARTITION_TYPES = _TYPES[:1]
WHERE = "p = 7 AND id < 5000000"
ONE_PARTITION = "p = 7"


def prepare_metadata(config: BenchConfig) -> Path:
    """Return the directory of a table with ``config.files`` live files: 50 partitions of 4 buckets, one file in
    twenty on level 0 and the rest without overlap on the highest level, each with statistics of all ten columns."""
    target = config.root / f"metadata{config.files}" / "bench.db" / "planned"

    def make(path: Path) -> None:
        write_table(path, config.files)

    build(target, make)
    return target


def write_table(root: Path, files: int) -> list[ManifestFileMeta]:
    """Write the metadata of such a table with one snapshot, and return its manifests."""
    paths = TablePaths(str(root))
    for folder in (paths.schema_dir, paths.snapshot_dir, paths.manifest_dir):
        Path(folder).mkdir(parents=True)
    Path(paths.schema_file(0)).write_text(json.dumps(schema()), encoding="utf-8")
    names = CommitFileNames(_UUID)
    entries = make_entries(np.arange(files), top_level=True)
    metas = []
    for start in range(0, files, _ENTRIES_A_MANIFEST):
        part = entries[start : start + _ENTRIES_A_MANIFEST]
        data = encode_manifest(part)
        name = names.manifest()
        Path(paths.manifest(name)).write_bytes(data)
        metas.append(summarize(name, len(data), part, PARTITION_TYPES))
    base, delta = names.manifest_list(), names.manifest_list()
    Path(paths.manifest(base)).write_bytes(encode_manifest_list(metas))
    Path(paths.manifest(delta)).write_bytes(encode_manifest_list([]))
    snapshot = Snapshot(
        id=1,
        schema_id=0,
        base_manifest_list=base,
        delta_manifest_list=delta,
        commit_user="bench",
        commit_identifier=1,
        commit_kind=CommitKind.APPEND,
        time_millis=TIME_MILLIS,
        total_record_count=files * ROWS_A_FILE,
        delta_record_count=0,
    )
    Path(paths.snapshot_file(1)).write_text(snapshot.to_json(), encoding="utf-8")
    for hint in (paths.latest_hint, paths.earliest_hint):
        Path(hint).write_text("1", encoding="utf-8")
    return metas


def schema() -> dict[str, object]:
    """Return the table's schema file."""
    return {
        "version": 3,
        "id": 0,
        "fields": [{"id": position, "name": name, "type": text} for position, (name, text) in enumerate(_COLUMNS)],
        "highestFieldId": len(_COLUMNS) - 1,
        "partitionKeys": ["p"],
        "primaryKeys": ["p", "id"],
        "options": {"bucket": str(BUCKETS), "write-only": "true"},
        "timeMillis": TIME_MILLIS,
    }


def make_entries(numbers: np.ndarray, top_level: bool) -> list[ManifestEntry]:
    """Return ADD entries of the files with these numbers (int64, from 0): number modulo 200 is the partition and
    bucket, the quotient the position in key order. If ``top_level`` is False, every file is on level 0."""
    position = numbers // (PARTITIONS * BUCKETS)
    low, high = position * 200_000, position * 200_000 + 199_999
    partition = (numbers % PARTITIONS).astype(np.int32)
    minima, maxima = _stats_rows(partition, low), _stats_rows(partition, high)
    key_type = _TYPES[1:2]
    keys = [with_arity(encode_rows([pa.array(side)], key_type), 1).to_pylist() for side in (low, high)]
    partitions = [encode_row([value], PARTITION_TYPES) for value in range(PARTITIONS)]
    entries = []
    for at, number in enumerate(numbers.tolist()):
        level_0 = not top_level or number // (PARTITIONS * BUCKETS) % 20 == 19
        file = DataFileMeta(
            file_name=f"data-{_UUID}-{number}.parquet",
            file_size=12_000_000 + number,
            row_count=ROWS_A_FILE,
            min_key=keys[0][at],
            max_key=keys[1][at],
            key_stats=SimpleStats(keys[0][at], keys[1][at], (0,)),
            value_stats=SimpleStats(minima[at], maxima[at], (0,) * len(_COLUMNS)),
            min_sequence_number=number * ROWS_A_FILE,
            max_sequence_number=(number + 1) * ROWS_A_FILE - 1,
            schema_id=0,
            level=0 if level_0 else 5,
            creation_time_millis=TIME_MILLIS,
            delete_row_count=0,
            file_source=FileSource.APPEND if level_0 else FileSource.COMPACT,
        )
        bucket = number // PARTITIONS % BUCKETS
        entries.append(ManifestEntry(FileKind.ADD, partitions[int(partition[at])], bucket, BUCKETS, file=file))
    return entries


def _stats_rows(partition: np.ndarray, ids: np.ndarray) -> list[bytes]:
    """Return ten-column statistics rows, one for each file."""
    count = len(ids)
    small = (ids % 1000).astype(np.int32)
    columns = [
        pa.array(partition),
        pa.array(ids),
        pa.array(small),
        pa.array(small),
        pa.array(small * 0.5),
        pa.array(["delivered"] * count),
        pa.array([f"{number:016x}" for number in ids.tolist()]),
        pa.array(small + np.int32(18262)).cast(pa.date32()),
        pa.array(ids * 1000 + 1_577_836_800_000_000).cast(pa.timestamp("us")),
        pa.array(ids % 1_000_000).cast(pa.decimal128(19, 0)).cast(pa.decimal128(12, 2)),
    ]
    rows: list[bytes] = with_arity(encode_rows(columns, _TYPES), len(_COLUMNS)).to_pylist()
    return rows
