"""The sources of a query: tables at one snapshot, system tables, changes, and frames that the caller passes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError, SnapshotNotFoundError, UnsupportedFeatureError
from lakelsm.sql.pushdown import Need
from lakelsm.sql.query_source import QuerySource, fields_of
from lakelsm.sql.syntax.relations import TableReference
from lakelsm.table.readable_table import ReadableTable
from lakelsm.table.result_table import ResultTable
from lakelsm.table.table import Table
from lakelsm.table.table_view import newest_view
from lakelsm.types import DataField

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Options of a hint that a read understands; the others are refused.
_POINTS = {
    "scan.snapshot-id": "snapshot",
    "scan.tag-name": "tag",
    "scan.timestamp": "timestamp",
    "scan.watermark": "watermark",
}
#: A text of VERSION AS OF that means a watermark, in milliseconds since 1970.
_WATERMARK = re.compile("watermark-(-?[0-9]{1,19})")
_WHOLE = re.compile("[0-9]{1,19}")
_FRESH = "deletion-vectors.merge-on-read"


@dataclass(frozen=True)
class TableSource:
    """The rows of a table at one snapshot."""

    table: ReadableTable
    fresh: bool

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns of the table."""
        return self.table.schema.fields

    @property
    def applies_conditions(self) -> bool:
        """See `QuerySource.applies_conditions`."""
        return True

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """See `QuerySource.reader`."""
        return self.table.to_reader(need.where, need.columns, fresh=self.fresh)

    def count(self, where: str | None) -> int:
        """See `CountedSource.count`: from metadata if no files are merged."""
        return int(self.table.count(where, fresh=self.fresh, engine="local"))

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """See `QuerySource.frame`."""
        columns = [self.fields[0].name] if need.columns is not None and not need.columns else need.columns
        return self.table.read(need.where, columns, fresh=self.fresh)

    def plan(self, need: Need) -> str:
        """See `QuerySource.plan`."""
        plan = self.table.explain(need.where, fresh=self.fresh)
        parts = [
            f"table {self.table.name}",
            "no snapshot" if plan.snapshot_id is None else f"snapshot {plan.snapshot_id}",
            f"columns {'*' if need.columns is None else ', '.join(need.columns) or 'none (rows are counted)'}",
            *([] if need.where is None else [f"where {need.where}"]),
            f"{plan.files_scanned} of {plan.files_live} files ({len(plan.raw_files)} without a merge, "
            f"{len(plan.merged_files)} merged in {len(plan.units)} units)",
        ]
        return "; ".join(parts)


@dataclass(frozen=True)
class ResultSource:
    """The rows of a system table."""

    name: str
    rows: ResultTable

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns."""
        return fields_of(self.rows.to_arrow().schema)

    @property
    def applies_conditions(self) -> bool:
        """See `QuerySource.applies_conditions`."""
        return False

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """See `QuerySource.reader`."""
        rows = self.rows.to_arrow()
        return (rows if need.columns is None else rows.select(need.columns)).to_reader()

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """See `QuerySource.frame`."""
        return self.rows.to_spark()

    def plan(self, need: Need) -> str:
        """See `QuerySource.plan`."""
        return f"system table {self.name}: rows from metadata"


@dataclass(frozen=True)
class ChangesSource:
    """The rows that changes between two snapshots add: inserts and updates, without the deleted rows, as in Paimon.

    ``is_empty``: the interval of times ends before the first snapshot.
    """

    table: Table
    start: int | str | datetime
    end: int | str | datetime
    _: KW_ONLY
    is_empty: bool = False

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns of the table."""
        return self.table.schema.fields

    @property
    def applies_conditions(self) -> bool:
        """See `QuerySource.applies_conditions`."""
        return False

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """See `QuerySource.reader`."""
        if self.is_empty:
            return self.table.to_reader("FALSE", need.columns)
        changes = self.table.changelog_reader(self.start, self.end, kind_column="rowkind")
        names = [field.name for field in self.fields if need.columns is None or field.name in need.columns]
        schema = pa.schema([changes.schema.field(name) for name in names])

        def added() -> Iterator[pa.RecordBatch]:
            for batch in changes:
                kinds = batch.column("rowkind")
                kept = pc.is_in(kinds, value_set=pa.array(["+I", "+U"], kinds.type))
                yield batch.filter(kept).select(names)

        return pa.RecordBatchReader.from_batches(schema, added())

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """See `QuerySource.frame`."""
        if self.is_empty:
            return self.table.read("FALSE")
        changes = self.table.changelog(self.start, self.end, kind_column="rowkind")
        return changes.where("rowkind IN ('+I', '+U')").drop("rowkind")

    def plan(self, need: Need) -> str:
        """See `QuerySource.plan`."""
        return f"changes of table {self.table.name} after {self.start!r} up to {self.end!r}"


def table_source(table: Table, reference: TableReference, *, fresh: bool = False) -> QuerySource:
    """Return the source of a table's name with time travel and hints. The newest snapshot is fixed now.

    ``fresh``: unless a hint decides, the newest snapshot includes the rows that other reads do not show yet.
    """
    options = dict(reference.options)
    hint = options.pop(_FRESH, None)
    points: dict[str, Any] = {_POINTS[key]: value for key, value in options.items() if key in _POINTS}
    unknown = sorted(set(options) - set(_POINTS))
    if unknown:
        raise UnsupportedFeatureError(
            f"SQL: option {unknown[0]!r} of a hint is not supported. Supported: {', '.join([*_POINTS, _FRESH])}."
        )
    if points and (reference.version is not None or reference.timestamp is not None):
        raise InvalidInputError(f"SQL: table {table.name} has AS OF and a hint with {sorted(options)[0]!r}. Remove one.")
    if "snapshot" in points:
        points["snapshot"] = _snapshot_id("option 'scan.snapshot-id'", points["snapshot"])
    if "watermark" in points:
        points["watermark"] = _watermark("option 'scan.watermark'", points["watermark"])
    if reference.version is not None:
        points.update(_version(table, reference.version))
    if reference.timestamp is not None:
        points["timestamp"] = _time(reference.timestamp)
    if points:
        return TableSource(table.at(**points), _flag(_FRESH, hint or "false"))
    return TableSource(newest_view(table), fresh if hint is None else _flag(_FRESH, hint))


def _flag(key: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidInputError(f"SQL: option {key!r}: {text!r} is neither 'true' nor 'false'.")
    return text.lower() == "true"


def is_id(text: str) -> bool:
    """Return whether a text is the id of a snapshot, or a time in milliseconds."""
    return _WHOLE.fullmatch(text) is not None


def _snapshot_id(source: str, text: str) -> int:
    if not is_id(text):
        raise InvalidInputError(f"SQL: {source}: {text!r} is not a snapshot id.")
    return int(text)


def _watermark(source: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInputError(f"SQL: {source}: {text!r} is not a watermark in milliseconds since 1970.") from None


def _version(table: Table, version: int | str) -> Mapping[str, Any]:
    """Return a tag if there is one of the name, else a snapshot id or a watermark."""
    names = {tag.name for tag in table.tags.list()}
    if str(version) in names:
        return {"tag": str(version)}
    if isinstance(version, int) or is_id(version):
        return {"snapshot": int(version)}
    watermark = _WATERMARK.fullmatch(version)
    if watermark is not None:
        return {"watermark": int(watermark[1])}
    known = f"Tags: {', '.join(sorted(names))}" if names else "The table has no tags"
    raise SnapshotNotFoundError(f"Table {table.name}: tag {version!r} does not exist. {known}.")


def _time(value: int | str) -> Any:
    """Return a time of TIMESTAMP AS OF: text, or seconds since 1970."""
    if isinstance(value, str):
        return value
    try:
        return datetime.fromtimestamp(value, timezone.utc)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInputError(f"SQL: TIMESTAMP AS OF {value}: the time is after the year 9999.") from error
