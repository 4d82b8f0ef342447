"""The data source of lakelsm, whose processes report the steps of a micro-batch: `format("lakelsm_killed")`."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from pyspark.sql.types import StructType

from lakelsm.data_source.source import DefaultSource
from tests.campaign.streams.steps import reached, watch_files

FORMAT = "lakelsm_killed"

_CALLS = ("initialOffset", "latestOffset", "partitions", "commit", "abort")


class HookedSource(DefaultSource):
    """The same source, with readers and writers that report each call before and after it."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> Any:
        watch_files()
        return _reporting(super().streamReader(schema), "read")

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        watch_files()
        return _reporting(super().streamWriter(schema, overwrite), "write")


def _reporting(made: Any, work: str) -> Any:
    """Give a reader or a writer a subclass of its class."""
    kind = type(made)
    calls = {name: _reported(getattr(kind, name), name) for name in _CALLS if hasattr(kind, name)}
    made.__class__ = type(kind.__name__, (kind,), {**calls, work: _WORK[work](getattr(kind, work))})
    return made


def _reported(call: Any, name: str) -> Any:
    @functools.wraps(call)
    def reporting(self: Any, *arguments: Any) -> Any:
        watch_files()  # This process has unpickled the object.
        reached(f"before {name}")
        result = call(self, *arguments)
        reached(f"after {name}")
        return result

    return reporting


def _reported_read(call: Any) -> Any:
    @functools.wraps(call)
    def read(self: Any, partition: Any) -> Any:
        reached("before read")
        for batch in call(self, partition):
            yield batch
            reached("in read")
        reached("after read")

    return read


def _reported_write(call: Any) -> Any:
    @functools.wraps(call)
    def write(self: Any, rows: Iterator[Any]) -> Any:
        reached("before write")
        result = call(self, _reported_rows(rows))
        reached("after write")
        return result

    return write


def _reported_rows(rows: Iterator[Any]) -> Iterator[Any]:
    for batch in rows:
        yield batch
        reached("in write")


_WORK = {"read": _reported_read, "write": _reported_write}
