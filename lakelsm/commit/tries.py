"""How often a commit is tried, and the waits in between."""

from __future__ import annotations

import logging

from lakelsm.operation_log import log_step
from lakelsm.options import TableOptions
from lakelsm.surroundings import Surroundings

_LOG = logging.getLogger("lakelsm.commit")


class Tries:
    """The tries of one commit that failed, and the waits after them, as the options ``commit.*`` say."""

    def __init__(self, options: TableOptions, surroundings: Surroundings) -> None:
        self._options, self._surroundings = options, surroundings
        self._started = surroundings.monotonic()
        self.failed = 0

    @property
    def elapsed(self) -> int:
        """Milliseconds since the first one began."""
        return int((self._surroundings.monotonic() - self._started) * 1000)

    def wait(self) -> bool:
        """Count a try that failed, and wait before the next one. False where it was the last that the options allow."""
        retry, self.failed = self.failed, self.failed + 1
        timeout = self._options.commit_timeout
        if retry >= self._options.commit_max_retries or (timeout is not None and self.elapsed > timeout):
            return False
        wait = wait_seconds(self._options, retry, self._surroundings.chance())
        log_step(_LOG, "Attempt %d of a commit failed; the next one begins in %.3f s", self.failed, wait)
        self._surroundings.sleep(wait)
        return True


def wait_seconds(options: TableOptions, retry: int, chance: float) -> float:
    """The wait before a retry (counted from 0). It doubles up to the longest; ``chance`` in [0, 1) adds up to a fifth."""
    wait = min(options.commit_min_retry_wait * 2.0 ** min(retry, 40), float(options.commit_max_retry_wait))
    return wait * (1 + 0.2 * chance) / 1000
