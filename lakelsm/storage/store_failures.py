"""Failures of requests to an object store as errors of lakelsm. Answers are not shown: they may hold credentials."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakelsm.environment import Environment
from lakelsm.errors import StorageError, StorageUnavailableError

_STATUS = re.compile(r"status code: (\d{3})")
#: The code within an answer, or as the library prints it for one key of a deletion.
_CODE = re.compile(r"(?:<Code>|\(code: )(\w{1,64})(?:</Code>|\))")
_RETRIES = re.compile(r"after (\d+) retries")
#: Servers from which machines in a cloud get their credentials.
_METADATA_HOSTS = ("169.254.169.254", "169.254.170.2", "metadata.google.internal", "metadata/identity")
_WRONG_CREDENTIALS = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "AuthenticationFailed"}
)
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_THROTTLED = ("429", "503")
#: Answers after which the same request may succeed, besides all 5xx except 501.
_TEMPORARY_STATUS = ("408", "429")
_TEMPORARY_CODES = frozenset(
    {
        *("SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "OperationAborted", "Throttling"),
        *("ConditionalRequestConflict", "RequestLimitExceeded", "ThrottlingException", "TooManyRequests"),
        *("ServerBusy", "OperationTimedOut"),
    }
)
#: Maximum repetitions of a request; the first and the longest wait, which doubles, and the time for all, in seconds.
RETRIES = 8
_FIRST_WAIT, _MAX_WAIT, _RETRIED_SECONDS = 0.25, 8.0, 60.0
_CREDENTIALS_REMEDY = (
    "Pass valid ones in storage_options (docs/object-stores.md), or set them in the environment or Spark's settings"
)


class UnknownOutcomeError(OSError):
    """The answer of a request is missing or an error, but the request may have succeeded. It never reaches a user."""


def retry_waits(environment: Environment) -> Iterator[float]:
    """Yield the seconds to wait before each retry, up to a quarter more or less at random."""
    end = environment.monotonic() + _RETRIED_SECONDS
    for number in range(RETRIES):
        wait = min(_FIRST_WAIT * 2**number, _MAX_WAIT) * (0.75 + environment.chance() / 2)
        if environment.monotonic() + wait > end:
            return
        yield wait


def is_refusal(error: BaseException) -> bool:
    """Return whether it is certain that the store did nothing: it refused the only request that was sent."""
    text = str(error)
    status = _STATUS.search(text)
    return status is not None and status[1].startswith("4") and _RETRIES.search(text) is None and status[1] != "408"


def is_out_of_range(error: BaseException) -> bool:
    """Return whether a request was for bytes that the object does not have."""
    text = str(error)
    return "status code: 416" in text or "non-partial response" in text


def store_error(uri: str, bucket: str, error: BaseException) -> OSError:
    """Return the error for a failed request: FileNotFoundError for a missing object, else StorageError with a remedy.

    It is StorageUnavailableError if the same request may succeed later.
    """
    text = str(error)
    status, code = _STATUS.search(text), _CODE.search(text)
    reason = " ".join([*([status[1]] if status else []), *([code[1]] if code else [])])
    if code is not None and code[1] in _NO_BUCKET:
        return StorageError(
            f"{uri}: bucket or container {bucket!r} does not exist ({reason}). Create it, or fix the name."
        )
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(f"{uri} does not exist")
    passes = _is_temporary(error, status and status[1], code and code[1])
    if any(host in text for host in _METADATA_HOSTS) and not (passes and status):
        return StorageError(f"{uri}: no credentials are set, and this machine has none. {_CREDENTIALS_REMEDY}.")
    if (code is not None and code[1] in _WRONG_CREDENTIALS) or (status is not None and status[1] == "401"):
        return StorageError(f"{uri}: the store does not accept the credentials ({reason}). {_CREDENTIALS_REMEDY}.")
    if (status is not None and status[1] == "403") or (code is not None and code[1] == "AccessDenied"):
        return StorageError(
            f"{uri}: the store denies access ({reason}). Give these credentials the permission to list, read, write and "
            f"delete there, or use others. {_CREDENTIALS_REMEDY}."
        )
    if status is not None and status[1] in _THROTTLED:
        return StorageUnavailableError(
            f"{uri}: the store has too many requests ({reason}), also after retries. Run it again later, or with fewer "
            "tasks at a time."
        )
    if passes and reason:
        return StorageUnavailableError(
            f"{uri}: the store has an internal error ({reason}), also after retries. Run it again later."
        )
    if passes:
        return StorageUnavailableError(
            f"{uri}: the store cannot be reached, or its answer is incomplete ({_connection_reason(text)}), also after "
            "retries. Check the endpoint and the network, and run it again later."
        )
    if "redirect" in text.lower() and not reason:
        return StorageError(f"{uri}: the store answers with a redirect. Set the region and endpoint of the bucket.")
    if not reason:
        return StorageError(
            f"{uri}: the request is refused ({_connection_reason(text)}). Fix the cause, and run it again."
        )
    return StorageError(f"{uri}: the store answers with an error ({reason}). Fix the cause, and run it again.")


def _is_temporary(error: BaseException, status: str | None, code: str | None) -> bool:
    """Return whether the same request may succeed later: the answer is incomplete, or the store has an internal error."""
    if code in _TEMPORARY_CODES or status in _TEMPORARY_STATUS:
        return True
    if status is not None:
        return status.startswith("5") and status != "501" and code != "NotImplemented"
    if code is not None or "redirect" in str(error).lower():
        return False
    return isinstance(error, OSError) or not isinstance(error, (ValueError, NotImplementedError))


def _connection_reason(text: str) -> str:
    """Return the library's reason for a failed connection, which contains no header or body."""
    _, dash, words = (text.splitlines() or [""])[0].rpartition(" - ")
    return words.strip()[:200] if dash else "no answer"
