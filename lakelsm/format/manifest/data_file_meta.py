"""Metadata of one data file in a manifest entry (docs/format.md 5.3 and 7)."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from enum import IntEnum

from lakelsm.errors import InvalidInputError
from lakelsm.format.row.binary_row import EMPTY_ROW


class FileSource(IntEnum):
    """The origin of a data file: new input, or a compaction. Persisted: do not change."""

    APPEND = 0
    COMPACT = 1


@dataclass(slots=True)
class SimpleStats:
    """Bounds and null counts of some columns.

    ``min_values`` and ``max_values`` are BinaryRows with their 4-byte arity; a null slot is an unknown bound.
    ``null_counts`` has one count for each column (None: unknown), or is None if the file has no counts.
    """

    min_values: bytes
    max_values: bytes
    null_counts: tuple[int | None, ...] | None


#: Statistics without columns. Shared: never change it.
EMPTY_STATS = SimpleStats(EMPTY_ROW, EMPTY_ROW, ())


@dataclass(slots=True)
class DataFileMeta:
    """One data or changelog file. Names and units are those of the ``_FILE`` record in docs/format.md 5.3.

    ``min_key`` and ``max_key`` are BinaryRows (with arity) of the trimmed primary key.
    ``creation_time_millis`` is the writer's local wall clock, stored as if it were UTC. ``value_stats_cols``
    names the columns of ``value_stats`` (None: every value column in schema order). ``file_source`` is a
    `FileSource`, or None if unknown. ``footer_checksum`` is the CRC-32 of the Parquet footer, which only
    manifests of lakelsm have (None: unknown).
    """

    file_name: str
    file_size: int
    row_count: int
    min_key: bytes
    max_key: bytes
    key_stats: SimpleStats
    value_stats: SimpleStats
    min_sequence_number: int
    max_sequence_number: int
    schema_id: int
    level: int
    extra_files: tuple[str, ...] = ()
    creation_time_millis: int | None = None
    delete_row_count: int | None = None
    embedded_index: bytes | None = None
    file_source: int | None = None
    value_stats_cols: tuple[str, ...] | None = None
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None
    write_cols_sequences: tuple[int, ...] | None = None
    footer_checksum: int | None = field(default=None, compare=False)

    def upgraded(self, level: int) -> DataFileMeta:
        """Return the metadata of the same file on the higher level ``level``.

        Raises InvalidInputError unless ``level`` is above the current one.
        """
        if level <= self.level:
            raise InvalidInputError(f"File {self.file_name} is on level {self.level}: it cannot move up to {level}.")
        moved = copy(self)
        moved.level = level
        return moved
