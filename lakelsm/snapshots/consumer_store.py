"""The consumers of one branch: named readers, and the snapshot that each reads next (docs/format.md 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakelsm.environment import SYSTEM
from lakelsm.errors import CorruptTableError
from lakelsm.format.file_names import consumer_of
from lakelsm.format.paths import TablePaths
from lakelsm.json_document import parse_object
from lakelsm.storage import FileIO

#: The maximum size of a consumer file, in bytes.
_MAX_BYTES = 1 << 16
#: Other engines overwrite the file in place, so a read may see a part of it: the attempts, and the seconds between them.
_TRIES = 5
_WAIT = 0.1

#: The prefix of the consumer that retains a snapshot during a rollback to it; its id follows. Persisted: do not change
ROLLBACK_CONSUMER = "lakelsm-rollback-to-"

_NEXT_SNAPSHOT = "nextSnapshot"


class ConsumerStore:
    """Reads the ``consumer/`` directory of one branch. Caches nothing."""

    def __init__(self, file_io: FileIO, paths: TablePaths, sleep: Callable[[float], None] = SYSTEM.sleep) -> None:
        self._file_io = file_io
        self._paths = paths
        self._sleep = sleep

    def names(self) -> Sequence[str]:
        """Return the ids of all consumers, sorted."""
        consumers = map(consumer_of, self._file_io.list(self._paths.consumer_dir))
        return sorted(consumer for consumer in consumers if consumer)

    def is_rolled_back(self, snapshot_id: int) -> bool:
        """Return whether a rollback to a snapshot below this one is running or was interrupted."""
        goals = (name.removeprefix(ROLLBACK_CONSUMER) for name in self.names() if name.startswith(ROLLBACK_CONSUMER))
        return any(not goal.isdecimal() or int(goal) < snapshot_id for goal in goals)

    def try_get(self, consumer_id: str) -> int | None:
        """Return the id of the snapshot that a consumer reads next, or None if there is no such consumer.

        Raises CorruptTableError if its file has no valid id, because the snapshots that it needs are unknown.
        """
        path = self._paths.consumer(consumer_id)
        for attempt in range(_TRIES):
            if attempt:
                self._sleep(_WAIT)
            try:
                return _next_snapshot(self._file_io.read(path, _MAX_BYTES), path)
            except FileNotFoundError:
                return None
            except CorruptTableError:
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError("the loop ended without a result or an error")

    def all(self) -> dict[str, int]:
        """Return the next snapshot of each consumer, without consumers that are deleted during the call.

        Raises CorruptTableError as `try_get`: a consumer that cannot be read is not a missing one.
        """
        found = ((name, self.try_get(name)) for name in self.names())
        return {name: snapshot_id for name, snapshot_id in found if snapshot_id is not None}


def consumer_text(next_snapshot: int) -> bytes:
    """Return the content of a consumer file."""
    return f'{{\n  "{_NEXT_SNAPSHOT}" : {next_snapshot}\n}}'.encode("ascii")


def _next_snapshot(data: bytes, path: str) -> int:
    found = parse_object(data, path).get(_NEXT_SNAPSHOT)
    if type(found) is not int or found < 0:
        raise CorruptTableError(
            f"{path}: {_NEXT_SNAPSHOT} = {found!r} is not a snapshot id. Restore the file, or reset the consumer."
        )
    return found
