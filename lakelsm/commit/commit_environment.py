"""What a commit needs beside its request: the table, its policies, and what is around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakelsm.commit.manifest_merge import MergePolicy
from lakelsm.format.paths import TablePaths
from lakelsm.schema.table_schema import TableSchema
from lakelsm.storage import FileIO
from lakelsm.surroundings import Surroundings


@dataclass(frozen=True)
class RetryPolicy:
    """Times in milliseconds; ``timeout`` None: no limit. Waits double from ``min_wait`` to ``max_wait``."""

    max_retries: int
    timeout: int | None
    min_wait: int
    max_wait: int

    def wait_seconds(self, retry: int, chance: float) -> float:
        """Return the wait before a retry (counted from 0); ``chance`` in [0, 1) adds up to a fifth."""
        wait = min(self.min_wait * 2.0 ** min(retry, 40), float(self.max_wait))
        return wait * (1 + 0.2 * chance) / 1000


@dataclass(frozen=True, kw_only=True)
class CommitEnvironment:
    """What a commit needs: the table, its policies, and what is around them."""

    file_io: FileIO
    paths: TablePaths
    schema: TableSchema
    merging: MergePolicy
    retrying: RetryPolicy
    compression: str
    writer_version: str
    surroundings: Surroundings
    step: Callable[[str], None]
