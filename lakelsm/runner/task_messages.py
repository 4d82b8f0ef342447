"""The messages in which tasks report the files that they wrote to the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
from pyroaring import BitMap

from lakelsm.format.index.index_manifest import IndexManifestEntry, decode_index_manifest, encode_index_manifest
from lakelsm.format.manifest import ManifestEntry, decode_entries, encode_entries
from lakelsm.format.row_kinds import ROW_KINDS
from lakelsm.snapshots.inheritance import latest_watermark

#: The columns of the batches that carry messages, in Spark's DDL.
MESSAGE_SCHEMA = (
    "entries binary, index_entries binary, changelog_entries binary, "
    "positions array<struct<partition: binary, bucket: int, data_file: string, positions: binary>>, "
    "ignored_rows bigint, ignored_deletes bigint, row_kinds array<bigint>, watermark bigint"
)
_POSITIONS_TYPE = pa.list_(
    pa.struct(
        [("partition", pa.binary()), ("bucket", pa.int32()), ("data_file", pa.string()), ("positions", pa.binary())]
    )
)

#: Rows that a compaction replaced in files that it does not rewrite: row indexes by data file, by partition and bucket.
MaskedPositions: TypeAlias = dict[tuple[bytes, int], dict[str, BitMap]]


@dataclass
class TaskMessages:
    """Files that a task wrote, which no snapshot contains yet, and the rows of other files that they replace.

    ``ignored_rows`` counts input rows without effect (`batch_check.ignored_rows`), ``ignored_deletes`` those of kind
    -D. ``row_kinds`` counts the other rows of a written batch by the code of their kind. ``watermark`` is that of the
    rows, in epoch milliseconds.
    """

    entries: list[ManifestEntry] = field(default_factory=list)
    index_entries: list[IndexManifestEntry] = field(default_factory=list)
    changelog_entries: list[ManifestEntry] = field(default_factory=list)
    positions: MaskedPositions = field(default_factory=dict)
    _: KW_ONLY
    ignored_rows: int = 0
    ignored_deletes: int = 0
    row_kinds: tuple[int, ...] = (0,) * len(ROW_KINDS)
    watermark: int | None = None

    def add(self, other: TaskMessages) -> None:
        """Append the messages of another task; positions of one data file are united."""
        self.entries.extend(other.entries)
        self.index_entries.extend(other.index_entries)
        self.changelog_entries.extend(other.changelog_entries)
        self.ignored_rows += other.ignored_rows
        self.ignored_deletes += other.ignored_deletes
        self.row_kinds = tuple(one + more for one, more in zip(self.row_kinds, other.row_kinds))
        self.watermark = latest_watermark(self.watermark, other.watermark)
        for bucket, files in other.positions.items():
            own = self.positions.setdefault(bucket, {})
            for name, rows in files.items():
                own[name] = own[name] | rows if name in own else rows

    def to_batch(self) -> pa.RecordBatch:
        """Return the messages as one row of `MESSAGE_SCHEMA`."""
        positions = [
            {"partition": partition, "bucket": bucket, "data_file": name, "positions": bytes(rows.serialize())}
            for (partition, bucket), files in self.positions.items()
            for name, rows in files.items()
        ]
        row = {
            "entries": pa.array([encode_entries(self.entries)], pa.binary()),
            "index_entries": pa.array([encode_index_manifest(self.index_entries)], pa.binary()),
            "changelog_entries": pa.array([encode_entries(self.changelog_entries)], pa.binary()),
            "positions": pa.array([positions], _POSITIONS_TYPE),
            "ignored_rows": pa.array([self.ignored_rows], pa.int64()),
            "ignored_deletes": pa.array([self.ignored_deletes], pa.int64()),
            "row_kinds": pa.array([self.row_kinds], pa.list_(pa.int64())),
            "watermark": pa.array([self.watermark], pa.int64()),
        }
        return pa.RecordBatch.from_arrays(list(row.values()), list(row))

    @staticmethod
    def of_row(row: Sequence[Any]) -> TaskMessages:
        """Return the messages of a row of `MESSAGE_SCHEMA`."""
        entries, index_entries, changelog_entries, positions, ignored_rows, ignored_deletes, row_kinds, watermark = row
        messages = TaskMessages(
            decode_entries(bytes(entries)),
            decode_index_manifest(bytes(index_entries), "a task's message"),
            decode_entries(bytes(changelog_entries)),
            ignored_rows=ignored_rows,
            ignored_deletes=ignored_deletes,
            row_kinds=tuple(row_kinds),
            watermark=watermark,
        )
        for position_row in positions:
            files = messages.positions.setdefault((bytes(position_row["partition"]), position_row["bucket"]), {})
            files[position_row["data_file"]] = BitMap.deserialize(bytes(position_row["positions"]))
        return messages
