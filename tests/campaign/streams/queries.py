"""The streaming queries of the campaign: rows of files or of a table, written to a table in one of two ways."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.campaign.locations import TableLocation
from tests.campaign.streams.hooked_source import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The columns of the input.
INPUT = "k INT, seq BIGINT, v BIGINT"
#: A table whose rows show lost, doubled and disordered changes of a key: their number and sum, the last and the newest.
SUMS = "k INT, n BIGINT, total BIGINT, last BIGINT, most BIGINT"
SUMS_OPTIONS = {
    "merge-engine": "aggregation",
    "fields.n.aggregate-function": "sum",
    "fields.total.aggregate-function": "sum",
    "fields.last.aggregate-function": "last_value",
    "fields.most.aggregate-function": "max",
}
NATIVE, DATA_SOURCE = "native", "data source"


@dataclass(frozen=True)
class Query:
    """``source`` is a directory of Parquet files, or a table. ``sink``: 'native' or 'data source'."""

    source: str | TableLocation
    target: TableLocation
    sink: str
    checkpoint: str
    user: str | None = None
    read_options: dict[str, str] = field(default_factory=dict)
    write_options: dict[str, Any] = field(default_factory=dict)
    is_mirror: bool = False

    def run(self, spark: SparkSession) -> str:
        """Run until the available input is written. Returns the text of its error."""
        try:
            query = self.start(spark, self._rows(spark))
            query.awaitTermination()
        except Exception as error:  # noqa: BLE001 - the campaign judges the text
            return f"{type(error).__name__}: {error}"
        return ""

    def _rows(self, spark: SparkSession) -> DataFrame:
        if isinstance(self.source, str):
            reader = spark.readStream.schema(INPUT).option("maxFilesPerTrigger", 1)
            rows = reader.parquet(self.source)
        else:
            reader = spark.readStream.format(FORMAT)
            rows = reader.options(**self.source.options, **self.read_options).load(self.source.uri)
        if self.is_mirror:
            return rows
        return rows.selectExpr("k", "1L AS n", "v AS total", "seq AS last", "seq AS most")

    def start(self, spark: SparkSession, rows: DataFrame) -> Any:
        writer = rows.writeStream.option("checkpointLocation", self.checkpoint).trigger(availableNow=True)
        kind = "rowkind" if self.is_mirror else None
        return started(spark, writer, self.target, self.sink, row_kind=kind, user=self.user, **self.write_options)


def started(
    spark: SparkSession, writer: Any, target: TableLocation, sink: str, *,
    row_kind: str | None = None, user: str | None = None, compact_every: int | None = None, name: str = FORMAT,
) -> Any:
    """Start a query that writes to a table, as the ``sink`` says."""
    if sink == DATA_SOURCE:
        options = {"commit-user": user, "row-kind": row_kind, "compact-every": compact_every}
        given = {key: str(value) for key, value in options.items() if value is not None}
        return writer.format(name).options(**target.options, **given).start(target.uri)
    more = {} if compact_every is None else {"compact_every": compact_every}
    return target.opened(spark).write_stream(writer, row_kind=row_kind, commit_user=user, **more)
