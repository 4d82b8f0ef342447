"""Numbers of manifest entries that no writer writes: damage, refused before anything follows from them.

The bounds are those of what Java Paimon and pypaimon write, not of what one table may have: a level may lie above
``num-levels``, which may have been lowered since, but each level below it is a part of Java's tree in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.lanes import ListColumn, LongColumn, Longs
from lakelsm.format.manifest.entry import ManifestEntry

_MAX_INT, _MAX_LONG = 2**31 - 1, 2**63 - 1
#: Least and greatest number by field. Bucket -2 waits for a compaction; -1 buckets in total are dynamic. A source is a
#: byte of Java's, of which later versions may give other values a meaning.
_BOUNDS = {
    "_BUCKET": (-2, _MAX_INT),
    "_TOTAL_BUCKETS": (-2, _MAX_INT),
    "_FILE._LEVEL": (0, _MAX_INT - 1),
    "_FILE._FILE_SIZE": (0, _MAX_LONG),
    "_FILE._ROW_COUNT": (0, _MAX_LONG),
    "_FILE._DELETE_ROW_COUNT": (0, _MAX_LONG),
    "_FILE._SCHEMA_ID": (0, _MAX_LONG),
    "_FILE._FILE_SOURCE": (0, 127),
    "_FILE._FIRST_ROW_ID": (0, _MAX_LONG),
}
#: The first number is never above the second.
_ORDERED = (
    ("_FILE._DELETE_ROW_COUNT", "_FILE._ROW_COUNT"),
    ("_FILE._MIN_SEQUENCE_NUMBER", "_FILE._MAX_SEQUENCE_NUMBER"),
)
_NULL_COUNTS = ("_FILE._KEY_STATS._NULL_COUNTS", "_FILE._VALUE_STATS._NULL_COUNTS")
#: Place of a row's kind in its bytes, behind the arity.
_ROW_KIND_AT = 4
#: The numbers that are checked, by path.
NUMBERS = (*_BOUNDS, "_FILE._MIN_SEQUENCE_NUMBER", "_FILE._MAX_SEQUENCE_NUMBER")


@dataclass(frozen=True)
class EntryNumbers:
    """The numbers of some entries by field; fields that were not decoded may be missing.

    ``place`` returns the manifest and the file of an entry, for errors.
    """

    numbers: Mapping[str, LongColumn]
    null_counts: Mapping[str, ListColumn]
    place: Callable[[int], str]

    def check(self) -> None:
        """Raise CorruptTableError for the first number that no writer writes."""
        for path, (least, most) in _BOUNDS.items():
            column = self.numbers.get(path)
            if column is not None:
                wrong = (column.values < least) | (column.values > most)
                self._refuse(wrong if column.present is None else wrong & column.present, column.values, path)
        for path, limit in _ORDERED:
            column, bound = self.numbers.get(path), self.numbers.get(limit)
            if column is not None and bound is not None:
                wrong = column.values > bound.values
                wrong = wrong if column.present is None else wrong & column.present
                self._refuse(wrong, column.values, path, f"more than its {_name(limit)} {{}}", bound.values)
        for path in _NULL_COUNTS:
            self._check_null_counts(path)

    def _check_null_counts(self, path: str) -> None:
        column, rows = self.null_counts.get(path), self.numbers.get("_FILE._ROW_COUNT")
        if column is None or rows is None or not isinstance(column.items, LongColumn):
            return
        entries = np.repeat(np.arange(len(rows.values)), np.diff(column.offsets))
        counts = column.items.values
        wrong = counts > rows.values[entries]
        if column.items.present is not None:
            wrong &= column.items.present
        if wrong.any():
            at = int(wrong.argmax())
            entry = int(entries[at])
            raise self._damaged(entry, path, int(counts[at]), f"more than its _ROW_COUNT {int(rows.values[entry])}")

    def _refuse(
        self,
        wrong: npt.NDArray[np.bool_],
        values: Longs,
        path: str,
        why: str = "which no table can have",
        limits: Longs | None = None,
    ) -> None:
        if wrong.any():
            at = int(wrong.argmax())
            raise self._damaged(at, path, int(values[at]), why.format("" if limits is None else int(limits[at])))

    def _damaged(self, entry: int, path: str, value: int, why: str) -> CorruptTableError:
        return CorruptTableError(
            f"{self.place(entry)} has {_name(path)} {value}, {why}: the manifest was damaged. Restore it, or read an "
            "older snapshot."
        )


def check_entries(entries: Sequence[ManifestEntry], source: str) -> None:
    """Check entries that are Python objects already. Raises CorruptTableError also for what is no number."""

    def column(path: str, values: Sequence[object], optional: bool) -> LongColumn:
        if any(type(value) is not int and not (optional and value is None) for value in values):
            raise CorruptTableError(f"{source} is no manifest: field {path} is missing or wrong.")
        present = np.array([value is not None for value in values], np.bool_)
        numbers = np.array([0 if value is None else value for value in values], np.int64)
        return LongColumn(numbers, present if optional else None)

    files = [entry.file for entry in entries]
    numbers = {
        "_BUCKET": column("_BUCKET", [entry.bucket for entry in entries], False),
        "_TOTAL_BUCKETS": column("_TOTAL_BUCKETS", [entry.total_buckets for entry in entries], False),
        **{
            path: column(path, [getattr(file, name) for file in files], name in _OPTIONAL)
            for path, name in _ATTRIBUTES.items()
        },
    }
    null_counts = {}
    for path, stats in zip(_NULL_COUNTS, ([file.key_stats for file in files], [file.value_stats for file in files])):
        lists = [one.null_counts or () for one in stats]
        items = column(path, [count for counts in lists for count in counts], True)
        null_counts[path] = ListColumn(np.cumsum([0, *map(len, lists)]), None, items)
    check_partitions({entry.partition for entry in entries}, source)
    EntryNumbers(numbers, null_counts, lambda at: f"{source}: the entry of data file {files[at].file_name}").check()


def check_partitions(partitions: Iterable[bytes], source: str) -> None:
    """Refuse a partition whose row has another kind than +I in its header.

    Partitions are one where their bytes are, so the same values would be of two partitions in one directory.
    """
    for partition in partitions:
        header = partition[_ROW_KIND_AT : _ROW_KIND_AT + 1]
        if header not in (b"", b"\0"):
            raise CorruptTableError(
                f"{source} has an entry whose _PARTITION has row kind {header[0]}, which no table can have: the manifest "
                "was damaged. Restore it, or read an older snapshot."
            )


_ATTRIBUTES = {
    "_FILE._FILE_SIZE": "file_size",
    "_FILE._ROW_COUNT": "row_count",
    "_FILE._MIN_SEQUENCE_NUMBER": "min_sequence_number",
    "_FILE._MAX_SEQUENCE_NUMBER": "max_sequence_number",
    "_FILE._SCHEMA_ID": "schema_id",
    "_FILE._LEVEL": "level",
    "_FILE._DELETE_ROW_COUNT": "delete_row_count",
    "_FILE._FILE_SOURCE": "file_source",
    "_FILE._FIRST_ROW_ID": "first_row_id",
}
_OPTIONAL = ("delete_row_count", "file_source", "first_row_id")


def _name(path: str) -> str:
    return path.removeprefix("_FILE.").replace("._", " ").replace("STATS NULL", "STATS _NULL")


__all__ = ["NUMBERS", "EntryNumbers", "check_entries", "check_partitions"]
