"""The names of a table's files (docs/format.md 1 and 2). This module makes and parses all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakelsm.arguments import BRANCH_PREFIX, CONSUMER_PREFIX, TAG_PREFIX
from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.partition_path import escape_path_name

#: Prefixes of the names of files and directories. Persisted: do not change
SNAPSHOT_PREFIX, SCHEMA_PREFIX, BUCKET_PREFIX, CHANGELOG_PREFIX = "snapshot-", "schema-", "bucket-", "changelog-"

#: The prefix of the names of maintenance records. Persisted: do not change
RECORD_PREFIX = "lakelsm-maintenance-"

#: The name of the file that records the target of the table's last rollback. Persisted: do not change
ROLLBACK_NAME = "lakelsm-rollback"

#: The prefix of the names of manifest lists. Persisted: do not change
MANIFEST_LIST_PREFIX = "manifest-list-"

#: The suffix of the file of a data file's indexes. Persisted: do not change
_FILE_INDEX_SUFFIX = ".index"

#: Names that denote a directory, or nothing.
_NO_NAMES = frozenset(["", ".", ".."])

#: File extensions of Paimon's data formats that lakelsm does not read. Persisted: do not change
_OTHER_FORMATS = frozenset(["orc", "avro", "csv", "text", "json", "row", "lance", "mosaic", "blob", "vortex"])

#: Extensions after the format in names of compressed text files. Persisted: do not change
_COMPRESSIONS = frozenset(["gz", "bz2", "deflate", "snappy", "lz4", "zst"])

#: Characters of the uuid that all files of one job share.
_UUID_PREFIX_LENGTH = 18


def new_data_file_name(prefix: str, uuid: str, counter: int, extension: str) -> str:
    """Return ``<prefix><uuid>-<counter>.<extension>``: one uuid per writer and bucket, the counter from 0.

    ``prefix`` comes from an option ('data-', 'changelog-').
    """
    return f"{prefix}{uuid}-{counter}.{extension}"


def statistics_name(uuid: str) -> str:
    """Return the name of a statistics file. Persisted: do not change."""
    return f"stat-{uuid}-0"


def file_index_name(file_name: str) -> str:
    """Return the name of the file with a data file's indexes, in the same directory."""
    return file_name + _FILE_INDEX_SUFFIX


def file_index_names(extra_files: Sequence[str]) -> list[str]:
    """Return the names of a data file's extra files that contain indexes."""
    return [name for name in extra_files if name.endswith(_FILE_INDEX_SUFFIX)]


def snapshot_id_of(name: str) -> int | None:
    """Return the number in ``snapshot-<N>``; None for any other name."""
    return _number_after(SNAPSHOT_PREFIX, name)


def schema_id_of(name: str) -> int | None:
    """Return the number in ``schema-<N>``; None for any other name."""
    return _number_after(SCHEMA_PREFIX, name)


def _number_after(prefix: str, name: str) -> int | None:
    number = name.removeprefix(prefix)
    return int(number) if number != name and number.isascii() and number.isdecimal() else None


def tag_of(name: str) -> str | None:
    """Return the tag's name in the file name ``tag-<name>``; None for any other file name."""
    return name.removeprefix(TAG_PREFIX) if name.startswith(TAG_PREFIX) else None


def changelog_id_of(name: str) -> int | None:
    """Return the number in ``changelog-<N>``; None for any other name."""
    return _number_after(CHANGELOG_PREFIX, name)


def consumer_of(name: str) -> str | None:
    """Return the consumer's id in the file name ``consumer-<id>``; None for any other file name."""
    return name.removeprefix(CONSUMER_PREFIX) if name.startswith(CONSUMER_PREFIX) else None


def branch_of(name: str) -> str | None:
    """Return the branch's name in the directory name ``branch-<name>``; None for any other name."""
    return name.removeprefix(BRANCH_PREFIX) if name.startswith(BRANCH_PREFIX) else None


def is_maintenance_record(name: str) -> bool:
    """Return whether a file name is that of a maintenance record."""
    return name.startswith(RECORD_PREFIX)


def is_bucket_name(name: str) -> bool:
    """Return whether a directory name is that of a bucket."""
    return name.startswith(BUCKET_PREFIX)


def is_partition_name(name: str, key: str) -> bool:
    """Return whether a directory name is that of a partition by column ``key``."""
    return name.startswith(partition_name(key, ""))


def partition_name(key: str, value: str) -> str:
    """Return the directory name of a partition value."""
    return f"{escape_path_name(key)}={escape_path_name(value)}"


def check_name(name: object, what: str, source: str) -> str:
    """Return ``name`` if it is a plain file name; it was read from the field ``what`` of the file ``source``.

    Raises CorruptTableError otherwise, because another name could lead out of the table's directory.
    """
    if not isinstance(name, str) or not is_plain(name):
        raise CorruptTableError(f"{source} is damaged: {what} is {name!r}, not a plain file name. Restore it.")
    return name


def check_names(names: Sequence[str], what: str, source: str) -> None:
    """Check many names with `check_name`. One test of all names together comes first, because it is faster."""
    joined = "".join(names)
    if "/" in joined or "\0" in joined or not _NO_NAMES.isdisjoint(names):
        for name in names:
            check_name(name, what, source)


def refuse_external_path(external_path: str | None, file_name: str) -> None:
    """Raise UnsupportedFeatureError for a file that a manifest locates outside the table's directory."""
    if external_path is not None:
        raise UnsupportedFeatureError(
            f"Data file {file_name} is at {external_path}, outside the table's directory: option "
            "'data-file.external-paths' is not supported. Use Apache Paimon for this table."
        )


def other_format(file_name: str) -> str | None:
    """Return the format of a data or changelog file that lakelsm does not read, derived from the file's name.

    Returns None for Parquet, and for an extension that no format of Paimon has: reading such a file shows its content.
    """
    _, *endings = file_name.lower().split(".")
    if len(endings) > 1 and endings[-1] in _COMPRESSIONS:
        endings.pop()
    return endings[-1] if endings and endings[-1] in _OTHER_FORMATS else None


def refuse_other_format(file_name: str, path: str) -> None:
    """Raise UnsupportedFeatureError if the name of the data or changelog file at ``path`` has an unsupported format."""
    found = other_format(file_name)
    if found is not None:
        raise UnsupportedFeatureError(
            f"File {path} has the format {found.upper()}; lakelsm reads only Parquet. Read it with Apache Paimon, or "
            "rewrite the data files there with a full compaction with 'file.format' = 'parquet' and "
            "'compaction.force-rewrite-all-files' = 'true'."
        )


def is_plain(name: str) -> bool:
    """Return whether a name is that of a file in the same directory: without separators, and not '.' or '..'."""
    return name not in _NO_NAMES and "/" not in name and "\0" not in name


@dataclass(frozen=True)
class AttemptNames:
    """Names of all files that the tasks of one job write: their uuids begin with the same 60 random bits.

    The files of a task are therefore known even if its message was lost. ``new_uuid`` returns version 4 uuids.
    """

    uuid_prefix: str
    new_uuid: Callable[[], str]

    @staticmethod
    def new(new_uuid: Callable[[], str]) -> AttemptNames:
        """Return names that no other job has."""
        return AttemptNames(new_uuid()[:_UUID_PREFIX_LENGTH], new_uuid)

    def uuid(self) -> str:
        """Return the uuid for the names of one writer."""
        return self.uuid_prefix + self.new_uuid()[_UUID_PREFIX_LENGTH:]

    def owns(self, file_name: str) -> bool:
        """Return whether this job wrote a file."""
        return self.uuid_prefix in file_name


class FileNames:
    """Names of the data and changelog files of one writer of a bucket: one uuid, one counter from 0."""

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid
        self._counter = 0

    def next(self, prefix: str, extension: str = "parquet") -> str:
        """Return the name of a new file."""
        number = self._counter
        self._counter += 1
        return new_data_file_name(prefix, self._uuid, number, extension)


class CommitFileNames:
    """Names of the metadata files of one commit: one uuid, one counter for each kind of file, from 0."""

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid
        self._counters: dict[str, int] = {}

    def manifest(self) -> str:
        """Return a new manifest's name."""
        return self._next("manifest")

    def manifest_list(self) -> str:
        """Return a new manifest list's name."""
        return self._next("manifest-list")

    def index_manifest(self) -> str:
        """Return a new index manifest's name."""
        return self._next("index-manifest")

    def index(self) -> str:
        """Return a new index file's name."""
        return self._next("index")

    def _next(self, kind: str) -> str:
        number = self._counters.get(kind, 0)
        self._counters[kind] = number + 1
        return f"{kind}-{self._uuid}-{number}"
