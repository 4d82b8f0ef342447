"""The way from a location to a store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.secret_values import shown_text, shown_uri
from lakelsm.storage.file_io import FileIO
from lakelsm.storage.local import LocalFileIO
from lakelsm.storage.object_location import is_object_uri, object_location
from lakelsm.storage.storage_options import store_options


def open_storage(
    uri: str, storage_options: Mapping[str, str] | None = None, session_settings: Mapping[str, str] | None = None
) -> tuple[FileIO, str]:
    """Return the store for a path or URI, and the path in that store.

    Local: a path or a ``file:`` URI, of which percent-encoding is kept as it is (Hadoop's rule, so that Spark
    sees the same path). A relative path is made absolute here, so a later change of the working directory does not move
    it; '~' is the home directory. Object stores: s3://bucket/path (s3a: too), gs://bucket/path,
    abfss://container@account.dfs.core.windows.net/path; their paths are whole URIs. Opening asks nothing of a store.
    Endpoints and credentials are as `store_options` finds them; ``session_settings`` are those of a Spark session.
    Raises UnsupportedFeatureError for other schemes and InvalidInputError for a relative ``file:`` URI, a remote host, or
    options that the store does not take.
    """
    if not uri.strip():
        raise InvalidInputError(f"a location must be a path or a URI, not {uri!r}")
    if is_object_uri(uri):
        place, path = object_location(uri)
        options = store_options(place, storage_options or {}, session_settings or {})
        if find_spec("obstore") is None:
            raise UnsupportedFeatureError(f"{uri}: object stores need the package obstore: install obstore>=0.12.")
        # Loaded only here: who has local tables alone need not pay for it.
        from lakelsm.storage.object_store import ObjectFileIO

        return ObjectFileIO(place, options), path
    if storage_options:
        raise InvalidInputError(f"{shown_uri(uri)} is local, and storage_options are for object stores: leave them out.")
    return LocalFileIO(), _local_path(uri)


def _local_path(uri: str) -> str:
    path = uri
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise InvalidInputError(f"{shown_uri(uri)}: a location must be a path or a URI.") from None
    if parts.scheme and not uri.startswith("/"):
        if parts.scheme.lower() != "file":
            raise UnsupportedFeatureError(
                f"{shown_uri(uri)}: storage scheme {parts.scheme!r} is not supported; use a path, a file: URI, or s3://, "
                "gs:// or abfss://"
            )
        if parts.netloc not in ("", "localhost"):
            path = f"{parts.netloc}{parts.path}".rpartition("@")[2]
            raise InvalidInputError(f"{shown_uri(uri)}: a file: URI has no host; write file:///{path}")
        path = uri[len("file:") :]
        if path.startswith("//"):
            path = path[2 + len(parts.netloc) :]
        if not path.startswith("/"):
            raise InvalidInputError(f"{shown_text(uri)}: a file: URI must be absolute; write {shown_text(path)}")
    return os.path.normpath(_absolute(path)).replace("//", "/")


def _absolute(path: str) -> str:
    """A path below the working directory of this moment, or below a home directory where it begins with '~'."""
    expanded = os.path.expanduser(path) if path.startswith("~") else path
    if expanded.startswith("~"):
        raise InvalidInputError(
            f"{shown_text(path)}: this machine knows no such home directory. Write an absolute path, or "
            f"{shown_text(f'./{path}')} for a directory of that name."
        )
    try:
        return os.path.abspath(expanded)
    except FileNotFoundError:
        raise InvalidInputError(
            f"{shown_text(path)} is relative, and the working directory does not exist any more: write an absolute path."
        ) from None
