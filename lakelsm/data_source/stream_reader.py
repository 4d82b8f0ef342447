"""The reader of a stream of a table, in a process beside the driver that lives as long as the query.

Spark asks it for the end of each batch, and for the parts of a batch, which tasks read. Spark's logs have the end of
each batch only: it asks for the initial offset again for each use of it, also in another process that runs the first
batch again. So the initial offset is a constant, and the end of the first batch has the offset where that batch starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from lakelsm.data_source.spark_rows import arrow_form
from lakelsm.data_source.stream_options import OpenedStream, StreamOptions
from lakelsm.errors import UnsupportedFeatureError
from lakelsm.stream.feed_part import FeedPart
from lakelsm.stream.feed_settings import LIMIT_OPTIONS
from lakelsm.stream.stream_limits import UNLIMITED, StreamLimits
from lakelsm.stream.stream_offset import StreamOffset

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

#: The initial offset of each query, and the key of the real one in the end of the first batch. Persisted in checkpoints.
_INITIAL = {"lakelsm-offset": "initial"}
_START = "start"

Offset = Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class FeedPartition(InputPartition):
    """A part of a batch that one task of Spark reads, with the task."""

    part: FeedPart
    task: Callable[[FeedPart], Iterator[pa.RecordBatch]]


class FeedReader(DataSourceStreamReader):
    """What the readers for all releases of PySpark share."""

    def __init__(self, options: StreamOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        #: The end of a query that reads what was committed when it started.
        self._until: StreamOffset | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the reader for tasks: without its feed."""
        return type(self), (self._options, self._schema)

    def initialOffset(self) -> dict[str, Any]:
        """Return the initial offset, the same one for each query."""
        return dict(_INITIAL)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Plan a batch from metadata: one partition for each task, none of them with rows."""
        if start == end:
            return []
        last = StreamOffset.of_json(end)
        first = StreamOffset.of_json(end.get(_START) if start == _INITIAL else start)
        if first == last:
            return []
        parts = self._stream.feed.plan(first, last)
        task = self._stream.feed.task(parts, self._stream.form, self._stream.kind_column)
        return [FeedPartition(part, task) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition."""
        assert isinstance(partition, FeedPartition)
        form = arrow_form(self._schema)
        for batch in partition.task(partition.part):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=form)

    def commit(self, end: Offset) -> None:
        """Record the progress of the consumer, if the stream has one."""
        self._stream.feed.record(StreamOffset.of_json(end))

    def _next(self, start: Offset, limits: StreamLimits) -> dict[str, Any]:
        """Return the end of the batch after ``start``; ``start`` if there is nothing, or not enough, to read.

        The first batch may have no rows: it puts the start of the query into the checkpoint.
        """
        feed = self._stream.feed
        if start != _INITIAL:
            begin = StreamOffset.of_json(start)
            end = feed.next(begin, limits, self._until)
            return dict(start) if end == begin else end.to_json()
        begin = self._first
        if self._until is not None and self._until.snapshot_id < begin.snapshot_id:
            self._until = feed.newest()  # The start was committed after the query has started.
        return {**feed.next(begin, limits, self._until).to_json(), _START: begin.to_json()}

    @cached_property
    def _stream(self) -> OpenedStream:
        return self._options.opened(self._schema)

    @cached_property
    def _first(self) -> StreamOffset:
        return self._stream.feed.first()


class UnlimitedReader(FeedReader):
    """The reader for PySpark 4.0 and 4.1, whose streams have no limits. A batch reads all that is committed."""

    def __init__(self, options: StreamOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        for name, limit in zip(LIMIT_OPTIONS, astuple(options.limits)):
            if limit is not None:
                raise UnsupportedFeatureError(
                    f"option {name!r}: PySpark {pyspark.__version__} has no limits for streams of a Python data source. "
                    "Use PySpark 4.2 or later, or remove the option."
                )
        #: The newest offset that Spark has passed; None in a new query before its first batch.
        self._seen: Offset = _INITIAL

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """Return the end of the next batch. Spark does not pass its start."""
        return self._next(self._seen, UNLIMITED)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """See `FeedReader.partitions`. A query that runs again calls it with the end of its last batch, twice."""
        self._seen = end
        return super().partitions(start, end)
