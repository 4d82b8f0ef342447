"""Statistics files: rows, bytes and columns of one snapshot, as Paimon's ANALYZE writes them (docs/format.md 4.4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from lakelsm.errors import CorruptTableError
from lakelsm.json_document import parse_object


@dataclass(frozen=True, kw_only=True)
class ColumnStatistics:
    """Statistics of one column; None means unknown. Bounds are Paimon's texts of values; lengths are of all values.

    Attributes are the JSON keys in snake_case, in Paimon's order.
    """

    col_id: int
    distinct_count: int | None = None
    min: str | None = None
    max: str | None = None
    null_count: int | None = None
    avg_len: int | None = None
    max_len: int | None = None


@dataclass(frozen=True, kw_only=True)
class TableStatistics:
    """Statistics of the merged rows of a snapshot; ``columns`` maps names to column statistics."""

    snapshot_id: int
    schema_id: int
    merged_record_count: int | None = None
    merged_record_size: int | None = None
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)

    @staticmethod
    def from_json(data: bytes, source: str) -> TableStatistics:
        """Parse a statistics file, which ``source`` names in errors. Raises CorruptTableError for other content."""
        document = parse_object(data, source)
        columns = document.get("colStats")
        if not isinstance(columns, dict) or not all(isinstance(each, dict) for each in columns.values()):
            raise CorruptTableError(f"{source} is damaged: it has no colStats. Restore it, or run analyze again.")
        return TableStatistics(
            snapshot_id=_number(document, "snapshotId", source, required=True) or 0,
            schema_id=_number(document, "schemaId", source, required=True) or 0,
            merged_record_count=_number(document, "mergedRecordCount", source),
            merged_record_size=_number(document, "mergedRecordSize", source),
            columns={name: _column(values, source) for name, values in columns.items()},
        )

    def to_json(self) -> str:
        """Return the text of the file."""
        counts = {"mergedRecordCount": self.merged_record_count, "mergedRecordSize": self.merged_record_size}
        known = {key: count for key, count in counts.items() if count is not None}
        document = {"snapshotId": self.snapshot_id, "schemaId": self.schema_id, **known, "colStats": self._columns()}
        return _pretty(document)

    def columns_json(self) -> str:
        """Return the statistics of the columns as JSON text."""
        return _pretty(self._columns()) if self.columns else "{ }"

    def _columns(self) -> dict[str, dict[str, Any]]:
        return {name: _document(column) for name, column in self.columns.items()}


_COLUMN_KEYS = {
    each.name: "".join(part.capitalize() if at else part for at, part in enumerate(each.name.split("_")))
    for each in fields(ColumnStatistics)
}


def _document(column: ColumnStatistics) -> dict[str, Any]:
    found = {key: getattr(column, name) for name, key in _COLUMN_KEYS.items()}
    return {key: value for key, value in found.items() if value is not None}


def _column(values: Mapping[str, Any], source: str) -> ColumnStatistics:
    return ColumnStatistics(
        col_id=_number(values, "colId", source, required=True) or 0,
        distinct_count=_number(values, "distinctCount", source),
        min=_text(values, "min", source),
        max=_text(values, "max", source),
        null_count=_number(values, "nullCount", source),
        avg_len=_number(values, "avgLen", source),
        max_len=_number(values, "maxLen", source),
    )


def _text(values: Mapping[str, Any], key: str, source: str) -> str | None:
    value = values.get(key)
    if isinstance(value, (str, type(None))):
        return value
    raise CorruptTableError(f"{source} is damaged: {key} is {value!r}, not text. Restore it, or run analyze again.")


def _number(values: Mapping[str, Any], key: str, source: str, required: bool = False) -> int | None:
    value = values.get(key)
    if type(value) is int or (value is None and not required):
        return value
    raise CorruptTableError(f"{source} is damaged: {key} is {value!r}, not an integer. Restore it, or run analyze again.")


def _pretty(document: Mapping[str, Any]) -> str:
    """Return JSON in the layout of Java's library, except for the space in an empty object."""
    return json.dumps(document, indent=2, separators=(",", " : "), ensure_ascii=False)
