"""Queries on a stream of the data source: as Spark runs them, without a JVM, and on Spark.

`MicroBatches` calls a stream reader in the order of Spark's micro-batch execution (4.2 and later), with offsets as JSON
texts, and the reader and its partitions as pickles. It keeps the logs of a checkpoint, so that a query can be run again.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.datasource import ReadAllAvailable

from lakelsm.data_source.source import DefaultSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rows = list[tuple[Any, ...]]


@dataclass
class MicroBatches:
    """A checkpoint: the end of each planned batch in ``offsets``, and the number of ``committed`` batches.

    ``sink`` has the rows of each batch. A batch that runs again must have the same rows.
    """

    options: dict[str, str]
    offsets: list[str] = field(default_factory=list)
    committed: int = 0
    sink: dict[int, Rows] = field(default_factory=dict)

    def run(self, *, batches: int = 100, commit: bool = True, now: bool = True, **more: Any) -> list[Rows]:
        """Start the query, and return the rows of its batches: at most ``batches``.

        ``commit``: False stops after the rows of a batch, before the query commits it. ``now``: with the trigger
        availableNow. ``more`` has options for this run.
        """
        source = pickle.loads(pickle.dumps(DefaultSource(self.options | more)))
        schema = source.schema()
        reader: Any = source.streamReader(schema)
        tasks: Any = pickle.loads(pickle.dumps(source.streamReader(schema)))
        if now:
            reader.prepareForTriggerAvailableNow()
        limit = reader.getDefaultReadLimit()
        found: list[Rows] = []
        for _ in range(batches):
            if self.committed == len(self.offsets):
                start = self._start(reader)
                end = json.dumps(reader.latestOffset(json.loads(start), limit))
                json.dumps(reader.reportLatestOffset())
                if end == start:
                    break
                self.offsets.append(end)
                if self.committed:
                    reader.commit(json.loads(start))
            found.append(self._rows(reader, tasks, schema.names))
            assert self.sink.setdefault(self.committed, found[-1]) == found[-1]
            if not commit:
                break
            self.committed += 1
        reader.stop()
        return found

    def _start(self, reader: Any) -> str:
        return self.offsets[self.committed - 1] if self.committed else json.dumps(reader.initialOffset())

    def _rows(self, reader: Any, tasks: Any, names: Sequence[str]) -> Rows:
        start, end = json.loads(self._start(reader)), json.loads(self.offsets[self.committed])
        parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions(start, end)]
        batches = [batch for part in parts for batch in tasks.read(part)]
        assert all(batch.schema.names == list(names) for batch in batches)
        return [tuple(row[name] for name in names) for batch in batches for row in batch.to_pylist()]


def all_available() -> Any:
    """Return the limit of a trigger that ignores limits."""
    return ReadAllAvailable()


def run_stream(frame: DataFrame, checkpoint: Path, **options: str) -> list[Rows]:
    """Run a streaming query on Spark with the trigger availableNow, and return the rows of its batches."""
    found: list[Rows] = []

    def collect(batch: DataFrame, _: int) -> None:
        found.append([tuple(row) for row in batch.collect()])

    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).options(**options)
    query = writer.foreachBatch(collect).trigger(availableNow=True).start()
    query.awaitTermination()
    return found
