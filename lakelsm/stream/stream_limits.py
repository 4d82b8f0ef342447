"""The limits of one batch of a stream."""

from __future__ import annotations

from dataclasses import dataclass

from lakelsm.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True)
class StreamLimits:
    """How much a batch reads at most, and how much must be there before it is read; None for no limit.

    Files, bytes and rows are those of data files and changelog files. A batch has at least one group of files, also if
    it exceeds the limits. With fewer than ``min_rows`` rows there is no batch until ``max_delay`` seconds after the
    previous one.
    """

    max_files: int | None = None
    max_bytes: int | None = None
    max_rows: int | None = None
    min_rows: int | None = None
    max_delay: float | None = None

    def __post_init__(self) -> None:
        """Raise InvalidInputError for limits that contradict each other."""
        if (self.min_rows is None) != (self.max_delay is None):
            raise InvalidInputError(
                "limits: the minimum number of rows and the maximum delay are set together. Set both, or neither."
            )
        if self.min_rows is not None and self.max_rows is not None and self.min_rows > self.max_rows:
            raise InvalidInputError(
                f"limits: the minimum of {self.min_rows} rows is more than the maximum of {self.max_rows}. Lower it."
            )

    def admits(self, files: int, size: int, rows: int) -> bool:
        """Return whether a batch may have so many files, bytes and rows."""
        pairs = ((files, self.max_files), (size, self.max_bytes), (rows, self.max_rows))
        return all(limit is None or value <= limit for value, limit in pairs)


#: No limits.
UNLIMITED = StreamLimits()
