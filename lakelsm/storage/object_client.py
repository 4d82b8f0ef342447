"""Requests for single objects of a bucket, through obstore, with lakelsm's retries and errors.

What is known never to change (manifests, index files, the ends of data files) may come from this process's memory.
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
from lakelsm.storage.kept_objects import KeptObjects
from lakelsm.storage.object_location import ObjectLocation, ObjectStoreKind
from lakelsm.storage.storage_options import StoreOptions
from lakelsm.storage.store_failures import RETRIES, OpenOutcomeError, is_certain, told, waits

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_LOG = logging.getLogger("lakelsm.storage")

Answer = TypeVar("Answer")

#: What the library itself sends again. Of most requests nothing: `ObjectFileIO.ask` does, also where an answer is cut.
_ASKED_ONCE = {"max_retries": 0, "retry_timeout": timedelta(seconds=60)}
#: Parts of long files and creations, which cannot be sent again from here. The library's waits are random.
_ASKED_AGAIN = {
    "max_retries": RETRIES,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(milliseconds=500), "max_backoff": timedelta(seconds=8), "base": 2},
}
_TIMEOUTS = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(minutes=2)}
#: How long an answer may stop; long contents take that long to be sent.
_SILENCE = {"read_timeout": timedelta(seconds=30)}
#: Larger contents are sent in parts.
_ONE_REQUEST = 8 << 20
#: What stores say that do not know the condition.
_NOT_BUILT = ("status code: 501", "NotImplemented")


@dataclass(frozen=True)
class ObjectClient:
    """The objects of one bucket, by their URIs. In a task it opens the store again from its options."""

    place: ObjectLocation
    options: StoreOptions = field(repr=False)
    root: str | None = None
    #: Whether what never changes may come from this process's memory.
    keeps: bool = True

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Return the content of an object of at most ``limit`` bytes. Raises FileNotFoundError when there is none.

        Manifests and index files of a table come from memory where this process has had them: no name of theirs is used
        twice.
        """
        key = self.key(path)
        kept = KEPT.get(self._named(path)) if self.keeps else None
        if kept is not None and (limit is None or len(kept) <= limit):
            return kept

        def content() -> bytes:
            answer = self.store.get(key)
            size = answer.meta["size"]
            if limit is not None and size > limit:
                raise CorruptTableError(
                    f"{path} has {size} bytes, and a file of its kind has {limit} at most: restore the file."
                )
            return bytes(answer.bytes())

        data = self.ask(path, content)
        self._keep(path, data)
        return data

    def size(self, path: str) -> int:
        """Return the size of an object in bytes. Raises FileNotFoundError when it does not exist."""
        key = self.key(path)
        size: int = self.ask(path, lambda: self.store.head(key))["size"]
        return size

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        """Create or replace an object: a reader sees the old content or the new."""
        key = self.key(path)
        self.forget(path)
        if len(data) > _ONE_REQUEST:
            self.ask(path, lambda: self.patient_store.put(key, data, use_multipart=True), again=False)
        else:
            self.ask(path, lambda: self.store.put(key, data, use_multipart=False))
        self._keep(path, data)

    def create(self, path: str, data: bytes) -> bool:
        """Create an object if the key is free (`If-None-Match: *`). Returns False when it is taken.

        The library sends a request again whose answer is lost: False can mean an earlier one of this very call. Raises
        UnsupportedFeatureError on a store that does not know the condition, StorageError where it is certain that
        nothing was created, and OpenOutcomeError where it is not.
        """
        from obstore.exceptions import AlreadyExistsError

        key = self.key(path)
        try:
            self.patient_store.put(key, data, mode="create", use_multipart=False)
            return True
        except LakelsmError:
            raise
        except AlreadyExistsError:
            return False
        except _library_errors() as error:
            failure: Exception = told(path, self.place.bucket, error)
            if any(words in str(error) for words in _NOT_BUILT):
                failure = no_conditions(self.place)
            elif not is_certain(error):
                failure = OpenOutcomeError(str(failure))
        raise failure

    def delete(self, path: str) -> None:
        """Delete an object; it is no error when it does not exist."""
        key = self.key(path)
        self.forget(path)
        with suppress(FileNotFoundError):
            self.ask(path, lambda: self.store.delete(key))

    @property
    def store(self) -> ObjectStore:
        """The library's store, the same for all that ask for this place with these options in this process.

        It sends a request once. Raises as `patient_store`.
        """
        return self._opened(patient=False)

    @property
    def patient_store(self) -> ObjectStore:
        """The library's store that sends requests again by itself: for what `ask` cannot repeat.

        Raises UnsupportedFeatureError in a process that was forked from one that has asked a store: requests of the
        library are carried out by threads, which such a process has not, nor can begin, and would wait for ever.
        """
        return self._opened(patient=True)

    def key(self, path: str) -> str:
        """The key of a path. Raises CorruptTableError where it leaves the root."""
        is_inside = self.root is None or path == self.root or path.startswith(f"{self.root}/")
        if not is_inside or "/../" in f"{path}/":
            raise CorruptTableError(
                f"{path} lies outside of the table's directory {self.root}. lakelsm opens nothing there: restore the "
                "file that names it."
            )
        return self.place.key(path)

    def ask(self, path: str, request: Callable[[], Answer], *, again: bool = True) -> Answer:
        """Do what asks the store; what fails on the way or by the store's own fault is done again after waits.

        Errors are told in lakelsm's words: the library's own may hold credentials. ``again`` is False for what must not
        or cannot be repeated: a request that another answer can follow on.
        """
        waiting = waits(SYSTEM) if again else iter(())
        while True:
            try:
                return request()
            except LakelsmError:
                raise
            except _library_errors() as error:
                failure = told(path, self.place.bucket, error)
            wait = next(waiting, None) if isinstance(failure, StorageUnavailableError) else None
            if wait is None:
                raise failure
            log_step(_LOG, "%s: asked again in %.2f s: %s", path, wait, failure)
            SYSTEM.sleep(wait)
            raise_if_cancelled()

    def _opened(self, *, patient: bool) -> ObjectStore:
        if _first_process() != os.getpid():
            raise UnsupportedFeatureError(
                f"{self.place.root}: this process ({os.getpid()}) was forked from one ({_first_process()}) that had used "
                "object stores, whose threads it lacks. Start processes by 'spawn' or 'forkserver' "
                "(multiprocessing.get_context), or fork before a table on an object store is opened."
            )
        try:
            return _opened_store(self.place, self.options, patient)
        except _library_errors():
            names = ", ".join(name for name, _ in self.options.settings) or "none"
        # Without what the library says: it may show what it was given.
        raise InvalidInputError(
            f"{self.place.root}: a store cannot be opened with these settings ({names}), whether they come from "
            "storage_options, the environment or Spark: one of them has no right form (docs/object-stores.md)."
        )

    def keep_end(self, path: str, size: int, end: bytes) -> None:
        """Keep the end of a data file of ``size`` bytes, which readers open several times."""
        KEPT.keep(self._named(f"{path}?"), size.to_bytes(8, "big") + end)

    def kept_end(self, path: str) -> tuple[int, bytes] | None:
        """The size and the end of a data file that this process has had."""
        kept = KEPT.get(self._named(f"{path}?")) if self.keeps else None
        return None if kept is None else (int.from_bytes(kept[:8], "big"), kept[8:])

    def forget(self, path: str) -> None:
        """Keep nothing of an object that is replaced or deleted."""
        KEPT.forget(self._named(path))
        KEPT.forget(self._named(f"{path}?"))

    def _keep(self, path: str, data: bytes) -> None:
        if self.root is not None and path.startswith((f"{self.root}/manifest/", f"{self.root}/index/")):
            KEPT.keep(self._named(path), data)

    def _named(self, path: str) -> Hashable:
        return self.place, self.options, path


@lru_cache(maxsize=1)
def _first_process() -> int:
    """The id of the process that first asked a store: also where this one was forked from it later."""
    return os.getpid()


@lru_cache(maxsize=64)
def _opened_store(place: ObjectLocation, options: StoreOptions, patient: bool) -> ObjectStore:
    """A store, with its connections. Opening asks nothing of it."""
    from obstore.store import AzureStore, GCSStore, S3Store

    settings: Any = dict(options.settings)
    common: dict[str, Any] = {
        "client_options": {**_TIMEOUTS, **({} if patient else _SILENCE), "allow_http": options.allows_http},
        "retry_config": _ASKED_AGAIN if patient else _ASKED_ONCE,
    }
    if place.kind is ObjectStoreKind.GCS:
        return GCSStore(place.bucket, config=settings, **common)
    if place.kind is ObjectStoreKind.AZURE:
        return AzureStore(place.bucket, config=settings | {"account_name": place.account}, **common)
    if options.credentials is not None:
        identity, secret, token = options.credentials
        known = {"access_key_id": identity, "secret_access_key": secret, "token": token, "expires_at": None}
        # As settings they would be mixed with a token that the environment has for others.
        common["credential_provider"] = lambda: known
    return S3Store(place.bucket, config=settings, **common)


@lru_cache(maxsize=1)
def _library_errors() -> tuple[type[Exception], ...]:
    """What the library raises; it raises Python's own errors too."""
    from obstore.exceptions import BaseError

    return (BaseError, OSError, ValueError, NotImplementedError)


#: What this process keeps of objects that never change: manifests, index files and the ends of data files.
KEPT = KeptObjects(64 << 20)


def no_conditions(place: ObjectLocation) -> UnsupportedFeatureError:
    """The error for a store that does not create an object only if it is absent."""
    return UnsupportedFeatureError(
        f"{place.root}: this store does not create an object only if it is absent (If-None-Match), so lakelsm cannot "
        "commit on it without the risk of overwriting another writer; nothing was written. Use a store with conditional "
        "writes (docs/object-stores.md)."
    )
