"""The kind of a table's file, derived from its name (docs/format.md 1.2), for the search for orphan files.

A name that neither Paimon nor lakelsm writes has no kind: such a file does not belong to the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

_UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"

#: The uuid and counter of one writer. A prefix before it comes from an option of the table or of a write.
_WRITTEN = rf"{_UUID}-[0-9]+(\.[0-9a-z]+)?\.(parquet|orc|avro)"
_DATA = rf"[^/]*{_WRITTEN}"
#: The uuid of one commit and, depending on the writer, a counter or a word.
_COMMITTED = rf"{_UUID}(-[0-9a-z]+)*"


class StoredKind(str, Enum):
    """A kind of file. Reports contain its text: do not change."""

    DATA = "data"
    CHANGELOG = "changelog"
    FILE_INDEX = "file-index"
    LOOKUP = "lookup"
    MANIFEST = "manifest"
    MANIFEST_LIST = "manifest-list"
    INDEX_MANIFEST = "index-manifest"
    INDEX = "index"
    STATISTICS = "statistics"
    TEMPORARY = "temporary"

    def __str__(self) -> str:
        return str(self.value)


class DirectoryRole(str, Enum):
    """The role of a table's directory, which determines the kinds of its files.

    ``OTHER``: directories of snapshots, tags, schemas …, where only temporary files have a kind.
    """

    BUCKET = "bucket"
    MANIFEST = "manifest"
    INDEX = "index"
    STATISTICS = "statistics"
    OTHER = "other"


_TEMPORARY = {StoredKind.TEMPORARY: rf"\.[^/]+\.{_UUID}\.tmp"}

#: Patterns (RE2) of whole names, by directory role and kind. If two kinds match, the later one applies.
NAME_PATTERNS: Mapping[DirectoryRole, Mapping[StoredKind, str]] = {
    DirectoryRole.BUCKET: {
        StoredKind.DATA: _DATA,
        StoredKind.CHANGELOG: rf"changelog-{_WRITTEN}",
        StoredKind.FILE_INDEX: rf"{_DATA}(-[0-9]+)?\.index",
        StoredKind.LOOKUP: rf"{_DATA}\.[^/]*\.lookup",
        **_TEMPORARY,
    },
    DirectoryRole.MANIFEST: {
        StoredKind.MANIFEST: rf"manifest-{_COMMITTED}",
        StoredKind.MANIFEST_LIST: rf"manifest-list-{_COMMITTED}",
        StoredKind.INDEX_MANIFEST: rf"index-manifest-{_COMMITTED}",
        **_TEMPORARY,
    },
    DirectoryRole.INDEX: {StoredKind.INDEX: rf"index-{_COMMITTED}", **_TEMPORARY},
    DirectoryRole.STATISTICS: {StoredKind.STATISTICS: rf"stat-{_COMMITTED}", **_TEMPORARY},
    DirectoryRole.OTHER: _TEMPORARY,
}
