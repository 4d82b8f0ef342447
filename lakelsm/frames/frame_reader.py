"""The rows of a DataFrame as a stream of Arrow batches on the driver."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from lakelsm.spark.tasks import map_in_arrow

_COLUMN = "batch"


def frame_reader(frame: DataFrame) -> pa.RecordBatchReader:
    """Return the rows of a DataFrame in their order. The driver holds one partition at a time, as Arrow bytes.

    Times with a zone are instants in UTC.
    """
    schema = to_arrow_schema(frame.schema, timezone="UTC")
    packed = map_in_arrow(frame, _packed, f"{_COLUMN} BINARY")

    def batches() -> Iterator[pa.RecordBatch]:
        for row in packed.toLocalIterator():
            for batch in pa.ipc.open_stream(row[_COLUMN]):
                yield pa.RecordBatch.from_arrays([_cast(*each) for each in zip(batch, schema.types)], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind)


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return each batch as one row with the bytes of an Arrow stream."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=[_COLUMN])
