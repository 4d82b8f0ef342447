"""Requests for single objects of a bucket, through obstore, with lakelsm's retries and errors.

Objects that never change (manifests, index files, the ends of data files) may come from this process's cache.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from lakelsm.cancellation import raise_if_cancelled
from lakelsm.environment import SYSTEM
from lakelsm.errors import (
    CorruptTableError,
    InvalidInputError,
    LakelsmError,
    StorageUnavailableError,
    UnsupportedFeatureError,
)
from lakelsm.operation_log import log_step
from lakelsm.storage.object_cache import ObjectCache
from lakelsm.storage.object_location import ObjectLocation, ObjectStoreKind
from lakelsm.storage.storage_options import StoreOptions
from lakelsm.storage.store_failures import RETRIES, UnknownOutcomeError, is_refusal, retry_waits, store_error

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_LOG = logging.getLogger("lakelsm.storage")

Answer = TypeVar("Answer")

#: The library retries no request: `ObjectClient.send` does, also after an incomplete answer.
_NO_RETRY = {"max_retries": 0, "retry_timeout": timedelta(seconds=60)}
#: For parts of long files and for creations, which `send` cannot repeat. The library's waits are random.
_RETRY = {
    "max_retries": RETRIES,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(milliseconds=500), "max_backoff": timedelta(seconds=8), "base": 2},
}
_TIMEOUTS = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(minutes=2)}
#: Seconds without data in an answer. Not for the retrying store, whose long contents take longer to send.
_READ_TIMEOUT = {"read_timeout": timedelta(seconds=30)}
#: Larger contents are sent in parts.
_MAX_REQUEST_BYTES = 8 << 20
#: Texts of stores that do not know the condition.
_UNKNOWN_CONDITION = ("status code: 501", "NotImplemented")


@dataclass(frozen=True)
class ObjectClient:
    """The objects of one bucket, by their URIs. A task opens the store again, from these options."""

    location: ObjectLocation
    options: StoreOptions = field(repr=False)
    root: str | None = None
    #: Whether objects that never change may come from this process's cache.
    uses_cache: bool = True

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Return the content of an object of at most ``limit`` bytes. Raises FileNotFoundError if it does not exist.

        Manifests and index files of a table come from the cache if this process has read or written them, because their
        names are not used twice.
        """
        key = self.key(path)
        kept = OBJECT_CACHE.get(self._cache_key(path)) if self.uses_cache else None
        if kept is not None and (limit is None or len(kept) <= limit):
            return kept

        def content() -> bytes:
            answer = self.store.get(key)
            size = answer.meta["size"]
            if limit is not None and size > limit:
                raise CorruptTableError(
                    f"{path} has {size} bytes; a file of its kind has at most {limit}. Restore the file."
                )
            return bytes(answer.bytes())

        data = self.send(path, content)
        self._keep(path, data)
        return data

    def size(self, path: str) -> int:
        """Return the size of an object in bytes. Raises FileNotFoundError if it does not exist."""
        key = self.key(path)
        size: int = self.send(path, lambda: self.store.head(key))["size"]
        return size

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        """Create or replace an object in one step: a reader sees either the old or the new content."""
        key = self.key(path)
        self.forget(path)
        if len(data) > _MAX_REQUEST_BYTES:
            self.send(path, lambda: self.retrying_store.put(key, data, use_multipart=True), retry=False)
        else:
            self.send(path, lambda: self.store.put(key, data, use_multipart=False))
        self._keep(path, data)

    def create(self, path: str, data: bytes) -> bool:
        """Create an object if the key is free (`If-None-Match: *`). Returns False if it is taken.

        The library repeats a request without an answer, so that False can mean an earlier request of this call. Raises
        UnsupportedFeatureError on a store that does not know the condition, StorageError if it is certain that nothing
        was created, and UnknownOutcomeError if it is not.
        """
        from obstore.exceptions import AlreadyExistsError

        key = self.key(path)
        try:
            self.retrying_store.put(key, data, mode="create", use_multipart=False)
            return True
        except LakelsmError:
            raise
        except AlreadyExistsError:
            return False
        except _library_errors() as error:
            failure: Exception = store_error(path, self.location.bucket, error)
            if any(words in str(error) for words in _UNKNOWN_CONDITION):
                failure = no_conditional_create(self.location)
            elif not is_refusal(error):
                failure = UnknownOutcomeError(str(failure))
        raise failure

    def delete(self, path: str) -> None:
        """Delete an object. A missing object is not an error."""
        key = self.key(path)
        self.forget(path)
        with suppress(FileNotFoundError):
            self.send(path, lambda: self.store.delete(key))

    @property
    def store(self) -> ObjectStore:
        """The library's store, which this process shares for one location and options.

        It sends each request once. Raises as `retrying_store`.
        """
        return self._opened(patient=False)

    @property
    def retrying_store(self) -> ObjectStore:
        """The library's store that repeats failed requests itself, for those that `send` cannot repeat.

        Raises UnsupportedFeatureError in a process that was forked after a store was opened: the library's threads do
        not exist in the child, and a request would wait forever.
        """
        return self._opened(patient=True)

    def key(self, path: str) -> str:
        """Return the key of a path. Raises CorruptTableError if it leaves the root."""
        is_inside = self.root is None or path == self.root or path.startswith(f"{self.root}/")
        if not is_inside or "/../" in f"{path}/":
            raise CorruptTableError(
                f"{path} is outside the table's directory {self.root}, and lakelsm does not open it. Restore the file "
                "that names it."
            )
        return self.location.key(path)

    def send(self, path: str, request: Callable[[], Answer], *, retry: bool = True) -> Answer:
        """Run a request to the store; after a connection failure or a temporary error, wait and repeat it.

        Failures become errors of lakelsm, because the library's own texts may contain credentials. ``retry`` is False
        for requests that must not or cannot be repeated, because the answer could differ.
        """
        waiting = retry_waits(SYSTEM) if retry else iter(())
        while True:
            try:
                return request()
            except LakelsmError:
                raise
            except _library_errors() as error:
                failure = store_error(path, self.location.bucket, error)
            wait = next(waiting, None) if isinstance(failure, StorageUnavailableError) else None
            if wait is None:
                raise failure
            log_step(_LOG, "%s: the request is sent again in %.2f s: %s", path, wait, failure)
            SYSTEM.sleep(wait)
            raise_if_cancelled()

    def _opened(self, *, patient: bool) -> ObjectStore:
        if _opening_process() != os.getpid():
            raise UnsupportedFeatureError(
                f"{self.location.root}: this process ({os.getpid()}) was forked from process {_opening_process()}, "
                "which had opened an object store. Start processes with 'spawn' or 'forkserver' "
                "(multiprocessing.get_context), or fork before a table on an object store is opened."
            )
        try:
            return _opened_store(self.location, self.options, patient)
        except _library_errors():
            names = ", ".join(name for name, _ in self.options.settings) or "none"
        # Without the library's text, which may contain the values of settings.
        raise InvalidInputError(
            f"{self.location.root}: the store cannot be opened with the settings {names}, from storage_options, the "
            "environment or Spark. One of their values has a wrong form (docs/object-stores.md)."
        )

    def cache_end(self, path: str, size: int, end: bytes) -> None:
        """Cache the end of a data file of ``size`` bytes, because readers open it several times."""
        OBJECT_CACHE.keep(self._cache_key(f"{path}?"), size.to_bytes(8, "big") + end)

    def cached_end(self, path: str) -> tuple[int, bytes] | None:
        """Return the size and the end of a data file from the cache, or None."""
        kept = OBJECT_CACHE.get(self._cache_key(f"{path}?")) if self.uses_cache else None
        return None if kept is None else (int.from_bytes(kept[:8], "big"), kept[8:])

    def forget(self, path: str) -> None:
        """Drop an object that is replaced or deleted from the cache."""
        OBJECT_CACHE.forget(self._cache_key(path))
        OBJECT_CACHE.forget(self._cache_key(f"{path}?"))

    def _keep(self, path: str, data: bytes) -> None:
        if self.root is not None and path.startswith((f"{self.root}/manifest/", f"{self.root}/index/")):
            OBJECT_CACHE.keep(self._cache_key(path), data)

    def _cache_key(self, path: str) -> Hashable:
        return self.location, self.options, path


@lru_cache(maxsize=1)
def _opening_process() -> int:
    """Return the id of the process that first opened a store, even in a process that was forked from it."""
    return os.getpid()


@lru_cache(maxsize=64)
def _opened_store(location: ObjectLocation, options: StoreOptions, patient: bool) -> ObjectStore:
    """Open a store, with its connections. No request is sent."""
    from obstore.store import AzureStore, GCSStore, S3Store

    settings: Any = dict(options.settings)
    common: dict[str, Any] = {
        "client_options": {**_TIMEOUTS, **({} if patient else _READ_TIMEOUT), "allow_http": options.allows_http},
        "retry_config": _RETRY if patient else _NO_RETRY,
    }
    if location.kind is ObjectStoreKind.GCS:
        return GCSStore(location.bucket, config=settings, **common)
    if location.kind is ObjectStoreKind.AZURE:
        return AzureStore(location.bucket, config=settings | {"account_name": location.account}, **common)
    if options.credentials is not None:
        identity, secret, token = options.credentials
        known = {"access_key_id": identity, "secret_access_key": secret, "token": token, "expires_at": None}
        # As settings, they would be mixed with a token that the environment has for other credentials.
        common["credential_provider"] = lambda: known
    return S3Store(location.bucket, config=settings, **common)


@lru_cache(maxsize=1)
def _library_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that the library raises, among them Python's own."""
    from obstore.exceptions import BaseError

    return (BaseError, OSError, ValueError, NotImplementedError)


#: Objects that never change, shared by the process: manifests, index files and the ends of data files.
OBJECT_CACHE = ObjectCache(64 << 20)


def no_conditional_create(location: ObjectLocation) -> UnsupportedFeatureError:
    """Return the error for a store that cannot create an object only if it is absent."""
    return UnsupportedFeatureError(
        f"{location.root}: this store cannot create an object only if it is absent (If-None-Match), and without that a "
        "commit could overwrite another writer's; nothing was written. Use a store with conditional writes "
        "(docs/object-stores.md)."
    )
