"""Manifest entries as numpy columns: filter first, then make Python objects of the rest (docs/format.md 5.3)."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import Container, refuse_version
from lakelsm.format.avro.lanes import DecodedColumns, ListColumn, LongColumn, decode_columns
from lakelsm.format.file_names import check_names
from lakelsm.format.manifest.avro_schemas import DATA_FILE_SCHEMA, MANIFEST_VERSION
from lakelsm.format.manifest.data_file_meta import EMPTY_STATS, DataFileMeta, SimpleStats
from lakelsm.format.manifest.decoded_fields import DecodedFields, Longs
from lakelsm.format.manifest.entry import EntryIdentity, FileKind, ManifestEntry
from lakelsm.format.manifest.entry_numbers import NUMBERS, EntryNumbers, check_partitions
from lakelsm.format.manifest.file_checksums import checksums_of
from lakelsm.format.manifest.file_table import FILE_TABLE, TABLE_LONGS, TABLE_OPTIONAL_LONGS, TABLE_TEXT_LISTS

_HEAD_FIELDS = ("_VERSION", "_KIND", "_PARTITION", "_BUCKET", "_TOTAL_BUCKETS")
_STATS_FIELDS = ("_KEY_STATS", "_VALUE_STATS")
_PLAIN_FILE_FIELDS = tuple(
    item["name"] for item in DATA_FILE_SCHEMA["fields"] if item["name"] not in _STATS_FIELDS
)
ALL_FIELDS = frozenset(
    [
        *_HEAD_FIELDS,
        *(f"_FILE.{name}" for name in _PLAIN_FILE_FIELDS),
        *(
            f"_FILE.{stats}.{part}"
            for stats in _STATS_FIELDS
            for part in ("_MIN_VALUES", "_MAX_VALUES", "_NULL_COUNTS")
        ),
    ]
)


_IDENTITY_FIELDS = ("_LEVEL", "_FILE_NAME", "_EXTRA_FILES", "_EMBEDDED_FILE_INDEX", "_EXTERNAL_PATH")
_COUNT_FIELDS = ("_ROW_COUNT", "_DELETE_ROW_COUNT", "_FILE_SOURCE", "_MIN_KEY", "_MAX_KEY")
#: Fields that a count of rows needs: `FileCounts`, keys and identities. Entries cannot be made from them.
COUNTED = frozenset([*_HEAD_FIELDS, *(f"_FILE.{name}" for name in (*_IDENTITY_FIELDS, *_COUNT_FIELDS))])
#: Fields that file names need.
NAMED = frozenset([*_HEAD_FIELDS, "_FILE._FILE_NAME", "_FILE._EXTRA_FILES"])


@dataclass(frozen=True)
class FileCounts:
    """Arrays with one value for each file. -1 means an unknown number of retractions or an unknown source."""

    levels: Longs
    rows: Longs
    delete_rows: Longs
    sources: Longs

    def selected(self, mask: npt.NDArray[np.bool_]) -> FileCounts:
        """Return the counts of the files that ``mask`` selects."""
        return FileCounts(self.levels[mask], self.rows[mask], self.delete_rows[mask], self.sources[mask])


class EntryColumns:
    """The entries of some manifests, in order. Rows are entry numbers; arrays have one value for each entry.

    ``partitions`` are the distinct partition rows; ``partition_codes`` has the index of each entry's partition.
    """

    def __init__(self, containers: Sequence[Container], fields: frozenset[str] = ALL_FIELDS) -> None:
        """Decode ``fields`` of manifests that share one writer schema.

        Raises CorruptTableError and UnsupportedFeatureError as decode_manifest does, and
        UnsupportedLayoutError for a schema that only fastavro reads.
        """
        self._source = ", ".join(container.source for container in containers)
        self._containers = containers
        decoded = decode_columns(containers, fields)
        self.count = decoded.count
        self._fields = DecodedFields(decoded, self._source)
        versions = self._fields.longs("_VERSION")
        if (versions != MANIFEST_VERSION).any():
            wrong = versions[versions != MANIFEST_VERSION]
            raise refuse_version(int(wrong[0]), MANIFEST_VERSION, self._source)
        self.kinds = self._fields.longs("_KIND")
        if self.count and not 0 <= self.kinds.min() <= self.kinds.max() <= FileKind.DELETE:
            raise CorruptTableError(f"{self._source} has an entry that is neither ADD nor DELETE. Restore the file.")
        self.buckets = self._fields.longs("_BUCKET")
        self.total_buckets = self._fields.longs("_TOTAL_BUCKETS")
        self._numbers(decoded).check()
        coded = self._fields.binary("_PARTITION", np.arange(self.count)).dictionary_encode()
        self.partition_codes: Longs = coded.indices.to_numpy().astype(np.int64)
        self.partitions: list[bytes] = coded.dictionary.to_pylist()
        check_partitions(self.partitions, self._source)

    def _numbers(self, decoded: DecodedColumns) -> EntryNumbers:
        columns = decoded.columns
        return EntryNumbers(
            {path: column for path in NUMBERS if isinstance(column := columns.get(path), LongColumn)},
            {path: column for path, column in columns.items() if isinstance(column, ListColumn)},
            self._entry_name,
        )

    def _entry_name(self, row: int) -> str:
        """Return manifest and data file of an entry, for errors."""
        ends = np.cumsum([container.record_count for container in self._containers])
        source = self._containers[int(np.searchsorted(ends, row, side="right"))].source
        return f"{source}: the entry of data file {self.file_names(np.array([row]))[0]}"

    def file_names(self, rows: Longs) -> list[str]:
        """Return the names of the data files of the entries ``rows``."""
        names = self._fields.texts(self._fields.slices("_FILE._FILE_NAME", rows))
        check_names(names, "_FILE_NAME", self._source)
        return names

    def stored_names(self) -> list[str]:
        """Return the names of all files of the entries: data files and their extra files."""
        rows = np.arange(self.count)
        beside = [name for names in self._extra_files(rows) for name in names]
        check_names(beside, "_EXTRA_FILES", self._source)
        return [*self.file_names(rows), *beside]

    def have_names(self, rows: Longs, names: Collection[str]) -> npt.NDArray[np.bool_]:
        """Return which of the files ``rows`` have one of the names."""
        wanted = pa.array([name.encode() for name in names], pa.large_binary())
        found: npt.NDArray[np.bool_] = pc.is_in(self._fields.binary("_FILE._FILE_NAME", rows), wanted).to_numpy(False)
        return found

    def identities(self, rows: Longs) -> list[EntryIdentity]:
        """Return the identities of the entries ``rows`` (see ManifestEntry.identity)."""
        return list(
            zip(
                self._partitions_of(rows),
                self.buckets[rows].tolist(),
                self._fields.longs("_FILE._LEVEL")[rows].tolist(),
                self.file_names(rows),
                self._extra_files(rows),
                self._fields.optional_bytes("_FILE._EMBEDDED_FILE_INDEX", rows),
                self._fields.optional_texts("_FILE._EXTERNAL_PATH", rows),
                strict=True,
            )
        )

    def counts(self, rows: Longs) -> FileCounts:
        """Return level, row counts and source of the files ``rows``."""
        return FileCounts(
            self._fields.longs("_FILE._LEVEL")[rows],
            self._fields.longs("_FILE._ROW_COUNT")[rows],
            self._fields.longs_or_minus_one("_FILE._DELETE_ROW_COUNT", rows),
            self._fields.longs_or_minus_one("_FILE._FILE_SOURCE", rows),
        )

    def key_bounds(self, rows: Longs) -> tuple[pa.LargeBinaryArray, pa.LargeBinaryArray]:
        """Return the minimum and the maximum key of each of the files ``rows``."""
        return self._fields.binary("_FILE._MIN_KEY", rows), self._fields.binary("_FILE._MAX_KEY", rows)

    def file_table(self, rows: Longs) -> pa.RecordBatch:
        """Return the files of the entries ``rows`` as a batch of `FILE_TABLE`."""
        stats = "_FILE._VALUE_STATS"
        names = self.file_names(rows)
        return pa.record_batch(
            [
                pa.array(names, pa.large_string()),
                *(pa.array(self._fields.longs(f"_FILE.{name}")[rows]) for name in TABLE_LONGS),
                *(self._fields.binary(path, rows) for path in ("_FILE._MIN_KEY", "_FILE._MAX_KEY")),
                *(self._fields.binary(path, rows) for path in (f"{stats}._MIN_VALUES", f"{stats}._MAX_VALUES")),
                self._fields.lists(f"{stats}._NULL_COUNTS", rows, pa.int64()),
                *(self._fields.optional_numbers(f"_FILE.{name}", rows) for name in TABLE_OPTIONAL_LONGS),
                self._fields.optional_text("_FILE._EXTERNAL_PATH", rows),
                *(self._fields.lists(f"_FILE.{name}", rows, pa.large_string()) for name in TABLE_TEXT_LISTS),
            ],
            schema=FILE_TABLE,
        )

    def entries(self, rows: Longs, stats: bool = True) -> list[ManifestEntry]:
        """Return the entries ``rows``, in that order. Without ``stats``, they have EMPTY_STATS."""
        with _collector_paused():
            return list(
                map(
                    ManifestEntry,
                    [_KINDS[kind] for kind in self.kinds[rows].tolist()],
                    self._partitions_of(rows),
                    self.buckets[rows].tolist(),
                    self.total_buckets[rows].tolist(),
                    self._files(rows, stats),
                )
            )

    def _files(self, rows: Longs, stats: bool) -> Iterable[DataFileMeta]:
        """Return the file metadata, field by field in the order of the dataclass."""
        return map(
            DataFileMeta,
            self.file_names(rows),
            self._fields.longs("_FILE._FILE_SIZE")[rows].tolist(),
            self._fields.longs("_FILE._ROW_COUNT")[rows].tolist(),
            self._fields.slices("_FILE._MIN_KEY", rows),
            self._fields.slices("_FILE._MAX_KEY", rows),
            self._stats("_FILE._KEY_STATS", rows) if stats else repeat(EMPTY_STATS, len(rows)),
            self._stats("_FILE._VALUE_STATS", rows) if stats else repeat(EMPTY_STATS, len(rows)),
            self._fields.longs("_FILE._MIN_SEQUENCE_NUMBER")[rows].tolist(),
            self._fields.longs("_FILE._MAX_SEQUENCE_NUMBER")[rows].tolist(),
            self._fields.longs("_FILE._SCHEMA_ID")[rows].tolist(),
            self._fields.longs("_FILE._LEVEL")[rows].tolist(),
            self._extra_files(rows),
            self._fields.optional_longs("_FILE._CREATION_TIME", rows),
            self._fields.optional_longs("_FILE._DELETE_ROW_COUNT", rows),
            self._fields.optional_bytes("_FILE._EMBEDDED_FILE_INDEX", rows),
            self._fields.optional_longs("_FILE._FILE_SOURCE", rows),
            self._fields.text_tuples("_FILE._VALUE_STATS_COLS", rows),
            self._fields.optional_texts("_FILE._EXTERNAL_PATH", rows),
            self._fields.optional_longs("_FILE._FIRST_ROW_ID", rows),
            self._fields.text_tuples("_FILE._WRITE_COLS", rows),
            self._fields.long_tuples("_FILE._WRITE_COLS_SEQUENCES", rows),
            map(self._footer_checksums.__getitem__, rows.tolist()),
        )

    @cached_property
    def _footer_checksums(self) -> list[int | None]:
        return [crc for container in self._containers for crc in checksums_of(container, container.record_count)]

    def _stats(self, path: str, rows: Longs) -> Iterable[SimpleStats]:
        return map(
            SimpleStats,
            self._fields.slices(f"{path}._MIN_VALUES", rows),
            self._fields.slices(f"{path}._MAX_VALUES", rows),
            self._fields.long_tuples(f"{path}._NULL_COUNTS", rows),
        )

    def _partitions_of(self, rows: Longs) -> list[bytes]:
        return [self.partitions[code] for code in self.partition_codes[rows].tolist()]

    def _extra_files(self, rows: Longs) -> list[tuple[str, ...]]:
        return [names or () for names in self._fields.text_tuples("_FILE._EXTRA_FILES", rows)]


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the garbage collector: it would walk over a growing list of entries, none of which is garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_KINDS = (FileKind.ADD, FileKind.DELETE)
