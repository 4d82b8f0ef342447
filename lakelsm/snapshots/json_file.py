"""Writes snapshot and schema files: checks that they read back equal, and publishes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakelsm.errors import CommitOutcomeUnknownError, InvalidInputError, LakelsmError, StorageUnavailableError
from lakelsm.format.snapshot import Snapshot, Tag
from lakelsm.schema.table_schema import TableSchema
from lakelsm.storage import FileIO

#: The attempts to get a certain answer, and the first wait between them in seconds.
_TRIES = 4
_WAIT = 0.2


def checked_bytes(document: Snapshot | Tag | TableSchema, path: str, max_bytes: int) -> bytes:
    """Return the content of a file for ``document``, checked by reading it back.

    Raises InvalidInputError if the document that is read differs, or if the file is larger than ``max_bytes``: such a
    file would make all readers fail.
    """
    try:
        data = document.to_json().encode("utf-8")
        same = type(document).from_json(data, path) == document
    except (TypeError, ValueError, LakelsmError) as error:
        raise InvalidInputError(
            f"{path} was not written: one of its values cannot be read back ({error})."
        ) from error
    if not same:
        raise InvalidInputError(f"{path} was not written: one of its values is read back as another value.")
    if len(data) > max_bytes:
        raise InvalidInputError(f"{path} was not written: it would have {len(data)} bytes; readers accept {max_bytes}.")
    return data


#: The remedy if it is unknown whether a snapshot was published.
_RERUN = "Rerun with the same commit user and batch id: it does nothing if the commit is visible."


@dataclass(frozen=True)
class Publication:
    """The outcome of a publication. ``is_ours``: the file has our content; otherwise another writer published it.

    ``in_doubt``: a request failed without an answer, so our file may have existed and been deleted since.
    """

    is_ours: bool
    in_doubt: bool


def publish(
    file_io: FileIO, path: str, data: bytes, sleep: Callable[[float], None], rerun: str = _RERUN
) -> bool:
    """Publish a file as `publication` does, and return whether it has our content."""
    return publication(file_io, path, data, sleep, rerun).is_ours


def publication(
    file_io: FileIO, path: str, data: bytes, sleep: Callable[[float], None], rerun: str = _RERUN
) -> Publication:
    """Create a snapshot or schema file if it is absent; return whose content it has.

    A request may succeed although its answer is an error or "exists", so the file is read back and compared. A snapshot
    has a uuid: equal bytes are the same snapshot. If the file does not exist after an error, the same bytes are sent
    again; a first request that succeeds late has the same content. Raises StorageError if the file system refused before
    anything was sent, CommitOutcomeUnknownError if the store gives no certain answer, and UnsupportedFeatureError if it
    has no create-if-absent.
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
            # Nothing was sent now, so nothing can be visible, unless an earlier attempt sent something.
            if failure is None:
                raise
        except Exception as error:  # noqa: BLE001  After any error, the request may have succeeded.
            failure, unanswered = error, unanswered + 1
        try:
            is_ours = file_io.read(path) == data
            # If only one request can have succeeded and our file exists, it was not deleted in between.
            removed = attempt > 0 and unanswered != 1 if is_ours else failure is not None or attempt > 0
            return Publication(is_ours, in_doubt=removed)
        except FileNotFoundError:
            continue
        except Exception as error:  # noqa: BLE001
            failure = failure or error
            if isinstance(error, StorageUnavailableError):
                break  # The client has already retried the request.
    raise CommitOutcomeUnknownError(
        f"{path}: the publication failed and the file cannot be read back ({failure}), so no file was deleted. {rerun}"
    ) from failure
