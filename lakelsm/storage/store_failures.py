"""What an object store or the way to it says, told in lakelsm's words. Answers are not shown: they hold credentials."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakelsm.environment import Environment
from lakelsm.errors import StorageError, StorageUnavailableError

_STATUS = re.compile(r"status code: (\d{3})")
#: In an answer; of one key of a deletion the library says it itself.
_CODE = re.compile(r"(?:<Code>|\(code: )(\w{1,64})(?:</Code>|\))")
_RETRIES = re.compile(r"after (\d+) retries")
#: Where machines in a cloud ask for credentials of their own.
_METADATA_HOSTS = ("169.254.169.254", "169.254.170.2", "metadata.google.internal", "metadata/identity")
_WRONG_CREDENTIALS = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "AuthenticationFailed"}
)
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_THROTTLED = ("429", "503")
#: Answers that say nothing of the request: the same may be carried out later. So are all 5xx but 501.
_PASSING_STATUS = ("408", "429")
_PASSING_CODES = frozenset(
    {
        *("SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "OperationAborted", "Throttling"),
        *("ConditionalRequestConflict", "RequestLimitExceeded", "ThrottlingException", "TooManyRequests"),
        *("ServerBusy", "OperationTimedOut"),
    }
)
#: A request is sent again so often, after waits in seconds that double, and within so many seconds of its first failure.
RETRIES = 8
_FIRST_WAIT, _LONGEST_WAIT, _RETRIED_SECONDS = 0.25, 8.0, 60.0
_CREDENTIALS_REMEDY = (
    "Pass the right ones in storage_options (docs/object-stores.md), or set them in the environment or Spark's settings"
)


class OpenOutcomeError(OSError):
    """A request may have been carried out though its answer is missing or an error. It never reaches a user."""


def waits(environment: Environment) -> Iterator[float]:
    """The seconds to wait before each time that a request is sent again, a quarter more or less by chance."""
    end = environment.monotonic() + _RETRIED_SECONDS
    for number in range(RETRIES):
        wait = min(_FIRST_WAIT * 2**number, _LONGEST_WAIT) * (0.75 + environment.chance() / 2)
        if environment.monotonic() + wait > end:
            return
        yield wait


def is_certain(error: BaseException) -> bool:
    """Whether the store surely did not do what it was asked: it refused the only request that was sent."""
    text = str(error)
    status = _STATUS.search(text)
    return status is not None and status[1].startswith("4") and _RETRIES.search(text) is None and status[1] != "408"


def is_out_of_range(error: BaseException) -> bool:
    """Whether bytes were asked for that an object does not have."""
    text = str(error)
    return "status code: 416" in text or "non-partial response" in text


def told(uri: str, bucket: str, error: BaseException) -> OSError:
    """The error for a failed request: FileNotFoundError where the object is missing, else StorageError and the remedy.

    It is StorageUnavailableError where the same request may be carried out later.
    """
    text = str(error)
    status, code = _STATUS.search(text), _CODE.search(text)
    reason = " ".join([*([status[1]] if status else []), *([code[1]] if code else [])])
    if code is not None and code[1] in _NO_BUCKET:
        return StorageError(f"{uri}: there is no bucket or container {bucket!r} ({reason}). Create it, or fix the name.")
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(f"{uri} does not exist")
    passes = _passes(error, status and status[1], code and code[1])
    if any(host in text for host in _METADATA_HOSTS) and not (passes and status):
        return StorageError(f"{uri}: no credentials are known, nor has this machine its own. {_CREDENTIALS_REMEDY}.")
    if (code is not None and code[1] in _WRONG_CREDENTIALS) or (status is not None and status[1] == "401"):
        return StorageError(f"{uri}: the store does not accept the credentials ({reason}). {_CREDENTIALS_REMEDY}.")
    if (status is not None and status[1] == "403") or (code is not None and code[1] == "AccessDenied"):
        return StorageError(
            f"{uri}: the store denies this ({reason}). Give these credentials the permission to list, read, write and "
            f"delete there. {_CREDENTIALS_REMEDY} if they are not the ones you mean."
        )
    if status is not None and status[1] in _THROTTLED:
        return StorageUnavailableError(
            f"{uri}: the store answers that it has too many requests ({reason}), also after waits. Run it again later, "
            "or with fewer tasks at a time."
        )
    if passes and reason:
        return StorageUnavailableError(
            f"{uri}: the store answers with an error of its own ({reason}), also after waits. Run it again later."
        )
    if passes:
        return StorageUnavailableError(
            f"{uri}: the store cannot be reached, or did not answer in full ({_last_words(text)}), also after waits. "
            "Check the endpoint and the network, and run it again later."
        )
    if "redirect" in text.lower() and not reason:
        return StorageError(f"{uri}: the store answers with a redirection. Set the bucket's own region and endpoint.")
    if not reason:
        return StorageError(f"{uri}: the request is refused ({_last_words(text)}). Fix what it names, and run it again.")
    return StorageError(f"{uri}: the store answered with an error ({reason}). Fix what it names, and run it again.")


def _passes(error: BaseException, status: str | None, code: str | None) -> bool:
    """Whether the same request may be carried out later: nothing was answered in full, or an error of the store's own."""
    if code in _PASSING_CODES or status in _PASSING_STATUS:
        return True
    if status is not None:
        return status.startswith("5") and status != "501" and code != "NotImplemented"
    if code is not None or "redirect" in str(error).lower():
        return False
    return isinstance(error, OSError) or not isinstance(error, (ValueError, NotImplementedError))


def _last_words(text: str) -> str:
    """What the library says of a connection; it names neither header nor body there."""
    _, dash, words = (text.splitlines() or [""])[0].rpartition(" - ")
    return words.strip()[:200] if dash else "no answer"
