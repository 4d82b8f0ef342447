"""Checks of the numbers in manifest entries: a number that no writer writes is damage.

The bounds are those of Java Paimon and pypaimon as writers, not of one table. A level may exceed ``num-levels``, which
may have been lowered since; but Java's tree in memory has a part for each level below it.
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
#: Minimum and maximum of each field. Bucket -2 means postponed; -1 buckets in total means dynamic. A source is a byte in
#: Java, and later versions may define other values.
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
#: Pairs of fields: the first number never exceeds the second.
_ORDERED = (
    ("_FILE._DELETE_ROW_COUNT", "_FILE._ROW_COUNT"),
    ("_FILE._MIN_SEQUENCE_NUMBER", "_FILE._MAX_SEQUENCE_NUMBER"),
)
_NULL_COUNTS = ("_FILE._KEY_STATS._NULL_COUNTS", "_FILE._VALUE_STATS._NULL_COUNTS")
#: Offset of the row kind in a row's bytes, after the arity.
_ROW_KIND_AT = 4
#: The fields that are checked, by path.
NUMBERS = (*_BOUNDS, "_FILE._MIN_SEQUENCE_NUMBER", "_FILE._MAX_SEQUENCE_NUMBER")


@dataclass(frozen=True)
class EntryNumbers:
    """The numbers of some entries by field. Fields that were not decoded may be missing.

    ``entry_name`` returns the manifest and the data file of an entry, for errors.
    """

    numbers: Mapping[str, LongColumn]
    null_counts: Mapping[str, ListColumn]
    entry_name: Callable[[int], str]

    def check(self) -> None:
        """Raise CorruptTableError for the first number that no writer writes."""
        for path, (low, high) in _BOUNDS.items():
            column = self.numbers.get(path)
            if column is not None:
                wrong = (column.values < low) | (column.values > high)
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
        why: str = "which is out of range",
        limits: Longs | None = None,
    ) -> None:
        if wrong.any():
            at = int(wrong.argmax())
            raise self._damaged(at, path, int(values[at]), why.format("" if limits is None else int(limits[at])))

    def _damaged(self, entry: int, path: str, value: int, why: str) -> CorruptTableError:
        return CorruptTableError(
            f"{self.entry_name(entry)} has {_name(path)} {value}, {why}: the manifest is damaged. Restore it, or read "
            "an older snapshot."
        )


def check_entries(entries: Sequence[ManifestEntry], source: str) -> None:
    """Check entries that are Python objects. Raises CorruptTableError also for values that are not numbers."""

    def column(path: str, values: Sequence[object], optional: bool) -> LongColumn:
        if any(type(value) is not int and not (optional and value is None) for value in values):
            raise CorruptTableError(f"{source} is not a manifest: field {path} is missing or wrong.")
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
    """Raise CorruptTableError for a partition whose row has another kind than +I in its header.

    Partitions are compared as bytes, so the same values would otherwise be two partitions in one directory.
    """
    for partition in partitions:
        header = partition[_ROW_KIND_AT : _ROW_KIND_AT + 1]
        if header not in (b"", b"\0"):
            raise CorruptTableError(
                f"{source} has an entry whose _PARTITION has row kind {header[0]}, which is out of range: the manifest "
                "is damaged. Restore it, or read an older snapshot."
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
