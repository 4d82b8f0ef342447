"""The reader of a stream for PySpark 4.2 and later, with limits for each batch and the trigger availableNow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from lakelsm.data_source.stream_reader import FeedReader
from lakelsm.stream.stream_limits import UNLIMITED


class LimitedReader(FeedReader, SupportsTriggerAvailableNow):
    """A reader that knows the start of each batch."""

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of the query: everything that is committed now."""
        self._until = self._stream.feed.newest()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return one of the limits: Spark's API has one only, and passes it back. `latestOffset` applies all of them."""
        limits = self._options.limits
        if limits.max_files is not None:
            return ReadMaxFiles(limits.max_files)
        if limits.max_bytes is not None:
            return ReadMaxBytes(limits.max_bytes)
        if limits.max_rows is not None:
            return ReadMaxRows(limits.max_rows)
        return ReadAllAvailable() if limits.min_rows is None else ReadMinRows(limits.min_rows)

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the batch that follows ``start``. A trigger that reads everything passes no ``limit``."""
        if isinstance(limit, ReadAllAvailable):
            return self._next(start, UNLIMITED)
        # The attributes of Spark's limits have the names of those of StreamLimits.
        limits = replace(self._options.limits, **vars(limit))
        if self._until is not None:  # The query ends there, so a batch never waits for more rows.
            limits = replace(limits, min_rows=None, max_delay=None)
        return self._next(start, limits)

    def reportLatestOffset(self) -> dict[str, Any]:
        """Return the end of everything that is committed now, for the progress of the query."""
        return self._stream.feed.newest().to_json()
