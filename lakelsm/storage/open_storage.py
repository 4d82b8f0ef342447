"""Opens the storage of a location."""

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
    """Return the storage of a path or URI, and the path in it. No request is sent.

    Local: a path or a ``file:`` URI, whose percent-encoding is kept (Hadoop's rule, so that Spark sees the same path). A
    relative path becomes absolute here, so that a later change of the working directory has no effect; '~' is the home
    directory. Object stores: s3://bucket/path (or s3a:), gs://bucket/path,
    abfss://container@account.dfs.core.windows.net/path; their paths are whole URIs. `store_options` finds endpoints and
    credentials; ``session_settings`` are those of a Spark session. Raises UnsupportedFeatureError for other schemes, and
    InvalidInputError for a relative ``file:`` URI, a remote host, or options that the store does not have.
    """
    if not uri.strip():
        raise InvalidInputError(f"location: {uri!r} is not a path or URI.")
    if is_object_uri(uri):
        location, path = object_location(uri)
        options = store_options(location, storage_options or {}, session_settings or {})
        if find_spec("obstore") is None:
            raise UnsupportedFeatureError(f"{uri}: object stores need the package obstore. Install obstore>=0.12.")
        # Imported here, because local tables do not need it.
        from lakelsm.storage.object_store import ObjectFileIO

        return ObjectFileIO(location, options), path
    if storage_options:
        raise InvalidInputError(f"{shown_uri(uri)} is local, and storage_options are for object stores. Leave them out.")
    return LocalFileIO(), _local_path(uri)


def _local_path(uri: str) -> str:
    path = uri
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise InvalidInputError(f"location: {shown_uri(uri)!r} is not a path or URI.") from None
    if parts.scheme and not uri.startswith("/"):
        if parts.scheme.lower() != "file":
            raise UnsupportedFeatureError(
                f"{shown_uri(uri)}: storage scheme {parts.scheme!r} is not supported. Use a path, a file: URI, or "
                "s3://, gs:// or abfss://."
            )
        if parts.netloc not in ("", "localhost"):
            path = f"{parts.netloc}{parts.path}".rpartition("@")[2]
            raise InvalidInputError(f"{shown_uri(uri)}: a file: URI has no host. Write file:///{path}.")
        path = uri[len("file:") :]
        if path.startswith("//"):
            path = path[2 + len(parts.netloc) :]
        if not path.startswith("/"):
            raise InvalidInputError(f"{shown_text(uri)}: a file: URI must be absolute. Write {shown_text(path)}.")
    return os.path.normpath(_absolute(path)).replace("//", "/")


def _absolute(path: str) -> str:
    """Return the absolute path, from the present working directory or, if it begins with '~', a home directory."""
    expanded = os.path.expanduser(path) if path.startswith("~") else path
    if expanded.startswith("~"):
        raise InvalidInputError(
            f"{shown_text(path)}: this home directory does not exist. Write an absolute path, or "
            f"{shown_text(f'./{path}')} for a directory of that name."
        )
    try:
        return os.path.abspath(expanded)
    except FileNotFoundError:
        raise InvalidInputError(
            f"{shown_text(path)} is relative, and the working directory does not exist any more. Write an absolute path."
        ) from None
