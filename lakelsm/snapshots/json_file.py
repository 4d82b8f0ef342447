"""What snapshot and schema files are made of reads back the same; and how a snapshot file becomes visible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakelsm.errors import CommitOutcomeUnknownError, InvalidInputError, LakelsmError, StorageUnavailableError
from lakelsm.format.snapshot import Snapshot, Tag
from lakelsm.schema.table_schema import TableSchema
from lakelsm.storage import FileIO

#: Attempts to reach a certain answer, and the wait between them in seconds.
_TRIES = 4
_WAIT = 0.2


def checked_bytes(document: Snapshot | Tag | TableSchema, path: str, max_bytes: int) -> bytes:
    """Return the content of a file for ``document``: what its reader turns into the very same document.

    Raises InvalidInputError where some value of it cannot be written so; one such file would stop every reader.
    """
    try:
        data = document.to_json().encode("utf-8")
        same = type(document).from_json(data, path) == document
    except (TypeError, ValueError, LakelsmError) as error:
        raise InvalidInputError(
            f"{path} was not written: a value that it would hold cannot be read back ({error})"
        ) from error
    if not same:
        raise InvalidInputError(f"{path} was not written: a value that it would hold reads back as another one")
    if len(data) > max_bytes:
        raise InvalidInputError(f"{path} was not written: with {len(data)} bytes it is longer than readers take")
    return data


#: The remedy if it is unknown whether a snapshot was published.
_RERUN = "Rerun with the same commit user and batch id: it does nothing if this commit is visible after all."


@dataclass(frozen=True)
class Publication:
    """The outcome of a publication. ``is_ours``: the file has our content; otherwise it has other content.

    ``in_doubt``: a request failed without an answer, so the file may have existed before, and been removed since.
    """

    is_ours: bool
    in_doubt: bool


def publish(
    file_io: FileIO, path: str, data: bytes, sleep: Callable[[float], None], rerun: str = _RERUN
) -> bool:
    """`publication`, reduced to whether the file has our content."""
    return publication(file_io, path, data, sleep, rerun).is_ours


def publication(
    file_io: FileIO, path: str, data: bytes, sleep: Callable[[float], None], rerun: str = _RERUN
) -> Publication:
    """Create a snapshot or schema file, or find that another has the id.

    A request may land though its answer is an error or "exists", so the file is read back and compared (a
    snapshot carries a uuid: equal bytes are this very snapshot). Where nothing is found after an error, the
    same bytes are sent again: should the first request land late, it carries the same content. Raises
    StorageError when the file system refused before anything was sent, CommitOutcomeUnknownError when the store gives no
    certain answer, and UnsupportedFeatureError when it cannot create-if-absent.
    """
    failure: Exception | None = None
    unanswered = 0
    for attempt in range(_TRIES):
        try:
            if attempt:
                sleep(_WAIT * 2 ** (attempt - 1))
            if file_io.create_if_absent(path, data):
                return Publication(True, in_doubt=attempt > 0)
        except CommitOutcomeUnknownError:
            raise
        except LakelsmError:
            # Nothing was sent, so nothing can be visible, unless an earlier try was.
            if failure is None:
                raise
        except Exception as error:  # noqa: BLE001  Whatever it is, the request may have landed.
            failure, unanswered = error, unanswered + 1
        try:
            is_ours = file_io.read(path) == data
            # Ours of the only request that can have landed was never removed: none put it back.
            removed = attempt > 0 and unanswered != 1 if is_ours else failure is not None or attempt > 0
            return Publication(is_ours, in_doubt=removed)
        except FileNotFoundError:
            continue
        except Exception as error:  # noqa: BLE001
            failure = failure or error
            if isinstance(error, StorageUnavailableError):
                break  # The request was already retried.
    raise CommitOutcomeUnknownError(
        f"{path}: publishing failed and the outcome cannot be read back ({failure}). No file was deleted. {rerun}"
    ) from failure
