"""Making a snapshot visible: create-if-absent, and reading back whenever the answer is not certain."""

from __future__ import annotations

from collections.abc import Callable

from lakelsm.errors import CommitOutcomeUnknownError, StorageError
from lakelsm.storage import FileIO

#: Attempts to reach a certain answer, and the wait between them in seconds.
_TRIES = 4
_WAIT = 0.2


def publish(file_io: FileIO, path: str, data: bytes, sleep: Callable[[float], None]) -> bool:
    """Create a snapshot file; return True when its content is there and False when another writer has the id.

    A request may land though its answer is an error or "exists", so the file is read back and compared (a
    snapshot carries a uuid: equal bytes are this very snapshot). Where nothing is found after an error, the
    same bytes are sent again: should the first request land late, it carries the same content. Raises StorageError
    when the file system refused before anything was sent,
    CommitOutcomeUnknownError when the store gives no certain answer, and UnsupportedFeatureError when it
    cannot create-if-absent.
    """
    failure: OSError | None = None
    for attempt in range(_TRIES):
        if attempt:
            sleep(_WAIT * 2 ** (attempt - 1))
        try:
            if file_io.create_if_absent(path, data):
                return True
        except StorageError:
            # Nothing was sent, so nothing can be visible, unless an earlier try was.
            if failure is None:
                raise
        except OSError as error:
            failure = error
        try:
            return file_io.read(path) == data
        except FileNotFoundError:
            continue
        except OSError as error:
            failure = failure or error
    raise CommitOutcomeUnknownError(
        f"{path}: publishing failed and the outcome cannot be read back ({failure}). No file was deleted. "
        "Rerun with the same commit user and batch id: it does nothing if this commit is visible after all."
    ) from failure
