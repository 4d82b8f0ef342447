"""The location of a data file's indexes, and how a reader gets them (docs/format.md 7.4)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import pyarrow as pa
from pyarrow import fs as arrow_fs

from lakelsm.errors import CorruptTableError, StorageError
from lakelsm.format.data_file.file_check import refused_read
from lakelsm.format.file_names import check_name, file_index_names
from lakelsm.format.index.file_index.file_index import FileIndex
from lakelsm.format.index.file_index.file_index_container import check_seal
from lakelsm.format.manifest.data_file_meta import DataFileMeta

#: Size limit of an index file: none is larger.
_MAX_BYTES = 1 << 30
_REMEDY = "Restore it, or read without indexes: set 'file-index.read.enabled' = 'false'."


@dataclass(frozen=True)
class FileIndexLocation:
    """The location of the indexes of the data file at ``data_file``: its manifest entry, or the file at ``path``.

    ``sealed`` means that lakelsm wrote them, with a checksum. Instances are pickled into tasks.
    """

    data_file: str
    _: KW_ONLY
    row_count: int
    embedded: bytes | None = None
    path: str | None = None
    sealed: bool = False

    @staticmethod
    def of(file: DataFileMeta, directory: str) -> FileIndexLocation | None:
        """Return the location of the indexes of a data file in ``directory``; None if it has no indexes.

        Raises CorruptTableError if the entry names several index files, or an invalid file name.
        """
        path = f"{directory}/{file.file_name}"
        if file.embedded_index is not None:
            return FileIndexLocation(path, row_count=file.row_count, embedded=file.embedded_index)
        names = file_index_names(file.extra_files)
        if len(names) > 1:
            raise CorruptTableError(
                f"The manifest entry of data file {path} names several index files: {', '.join(names)}. Restore it."
            )
        sealed = file.footer_checksum is not None  # Manifests contain it for files that lakelsm wrote.
        for name in names:
            check_name(name, "_EXTRA_FILES", f"The manifest entry of data file {path}")
            return FileIndexLocation(path, row_count=file.row_count, path=f"{directory}/{name}", sealed=sealed)
        return None

    @property
    def source(self) -> str:
        """The name of the indexes in messages."""
        kind = "Embedded file index" if self.path is None else f"File index {self.path}"
        return f"{kind} of data file {self.data_file}"

    def read(self, filesystem: arrow_fs.FileSystem) -> FileIndex:
        """Read the indexes. Raises CorruptTableError, naming both files, if they are missing or cannot be decoded."""
        if self.embedded is not None:
            return FileIndex(self.embedded, self.row_count, self.source)
        try:
            with filesystem.open_input_file(self.path) as stored:
                if stored.size() > _MAX_BYTES:
                    raise CorruptTableError(f"{self.source} has {stored.size()} bytes, more than {_MAX_BYTES}. {_REMEDY}")
                data = stored.read()
        except StorageError:  # A failure of the store, not of the file.
            raise
        except FileNotFoundError as error:
            raise CorruptTableError(f"{self.source} does not exist. {_REMEDY}") from error
        except (OSError, pa.ArrowException) as error:
            unread = CorruptTableError(f"{self.source} cannot be read: {error}. {_REMEDY}")
            raise refused_read(self.source, error) or unread from error
        check_seal(data, self.data_file.rsplit("/", 1)[-1], self.source, needed=self.sealed)
        return FileIndex(data, self.row_count, self.source)
