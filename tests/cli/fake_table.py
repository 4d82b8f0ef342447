"""A table that records the arguments of its calls, for tests of the command line without Spark."""

from __future__ import annotations

import json
from typing import Any

from lakelsm.results import CompactionResult, CompactionStatus

NAMED = ["--warehouse", "/wh", "--table", "d.t"]
DONE = CompactionResult(
    table="d.t",
    status=CompactionStatus.DONE,
    snapshot_ids=(8, 9),
    buckets=4,
    files_rewritten=12,
    files_upgraded=3,
    files_written=5,
    bytes_read=4 << 20,
    bytes_written=2 << 20,
    rows_read=1234567,
    rows_written=1000,
    seconds=12.34,
)


class FakeTable:
    """Records the arguments of a compaction, and returns or raises ``answer``."""

    def __init__(self, answer: CompactionResult | Exception) -> None:
        self.answer = answer
        self.arguments: dict[str, Any] = {}

    def compact(self, full: bool, where: str | None, **more: Any) -> CompactionResult:
        self.arguments = {"full": full, "where": where, **more}
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def last_object(text: str) -> dict[str, Any]:
    """Return the JSON object of the last line."""
    found = json.loads(text.splitlines()[-1])
    assert isinstance(found, dict)
    return found
