"""The file system: read, list, delete, and create-if-absent, the primitive that a commit needs."""

from lakelsm.storage.file_io import FileIO
from lakelsm.storage.local import LocalFileIO
from lakelsm.storage.open_storage import open_storage

__all__ = ["FileIO", "LocalFileIO", "open_storage"]
