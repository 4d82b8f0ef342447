"""Where each file of a table lies and what it is called (docs/format.md 1 and 2). All names are made and parsed here.

Paths are plain strings under the table's root; URIs are the storage package's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lakelsm.arguments import BRANCH_PREFIX, CONSUMER_PREFIX, LONGEST_NAME, TAG_PREFIX
from lakelsm.errors import CorruptTableError, InvalidInputError, UnsupportedFeatureError
from lakelsm.format.partition_path import escape_path_name, partition_label, partition_text

__all__ = [
    "BRANCH_MARK",
    "DATABASE_SUFFIX",
    "MAIN_BRANCH",
    "POSTPONE_BUCKET",
    "AttemptNames",
    "CommitFileNames",
    "PartitionText",
    "TablePaths",
    "branch_of",
    "changelog_id_of",
    "check_name",
    "check_names",
    "consumer_of",
    "database_path",
    "escape_path_name",
    "file_index_among",
    "file_index_name",
    "is_bucket_name",
    "is_maintenance_record",
    "is_partition_name",
    "new_data_file_name",
    "partition_label",
    "partition_text",
    "refuse_external_path",
    "schema_id_of",
    "snapshot_id_of",
    "table_path",
    "tag_of",
]

#: Partition column names with the text of their values (see partition_text), in partition-key order.
PartitionText = Sequence[tuple[str, str]]

#: ``_BUCKET`` of rows that wait for a compaction to be given a bucket. Persisted: do not change
POSTPONE_BUCKET = -2

#: Names that mean a directory, or nothing.
_NO_NAMES = frozenset(["", ".", ".."])

#: Characters of a uuid that the files of one job share.
_MARK_LENGTH = 18

#: How the name of a data file's indexes ends. Persisted: do not change
_FILE_INDEX_SUFFIX = ".index"

#: How the names of a warehouse's databases end.
DATABASE_SUFFIX = ".db"

#: The branch that every table has: the table itself.
MAIN_BRANCH = "main"

#: Between a table's name and that of one of its branches, as in Paimon's identifiers.
BRANCH_MARK = "$branch_"

_SNAPSHOT_PREFIX, _SCHEMA_PREFIX, _BUCKET_PREFIX = "snapshot-", "schema-", "bucket-"
_CHANGELOG_PREFIX = "changelog-"

#: How the names of records of maintenance begin. Persisted: do not change
_RECORD_PREFIX = "lakelsm-maintenance-"


def database_path(warehouse: str, database: str) -> str:
    """Return the directory of a database: ``<warehouse>/<database>.db``."""
    return f"{_root(warehouse)}/{database}{DATABASE_SUFFIX}"


def table_path(warehouse: str, database: str, table: str) -> str:
    """Return the root directory of a table of the file-system catalog."""
    return f"{database_path(warehouse, database)}/{table}"


def new_data_file_name(prefix: str, uuid: str, counter: int, extension: str) -> str:
    """Return ``<prefix><uuid>-<counter>.<extension>``: one uuid per writer and bucket, the counter from 0.

    ``prefix`` is the option's text ('data-', 'changelog-').
    """
    return f"{prefix}{uuid}-{counter}.{extension}"


def statistics_name(uuid: str) -> str:
    """Return the name of a statistics file. Persisted: do not change."""
    return f"stat-{uuid}-0"


def file_index_name(file_name: str) -> str:
    """Return the name of the indexes of a data file that lie beside it."""
    return file_name + _FILE_INDEX_SUFFIX


def file_index_among(extra_files: Sequence[str]) -> list[str]:
    """Return those of a data file's extra files that hold indexes."""
    return [name for name in extra_files if name.endswith(_FILE_INDEX_SUFFIX)]


def snapshot_id_of(name: str) -> int | None:
    """Return the number in ``snapshot-<N>``; None for any other name."""
    return _number_after(_SNAPSHOT_PREFIX, name)


def schema_id_of(name: str) -> int | None:
    """Return the number in ``schema-<N>``; None for any other name."""
    return _number_after(_SCHEMA_PREFIX, name)


def _number_after(prefix: str, name: str) -> int | None:
    number = name.removeprefix(prefix)
    return int(number) if number != name and number.isascii() and number.isdecimal() else None


def tag_of(name: str) -> str | None:
    """Return the tag whose file is called ``name``; None for any other name."""
    return name.removeprefix(TAG_PREFIX) if name.startswith(TAG_PREFIX) else None


def changelog_id_of(name: str) -> int | None:
    """Return the number in ``changelog-<N>``; None for any other name."""
    return _number_after(_CHANGELOG_PREFIX, name)


def consumer_of(name: str) -> str | None:
    """Return the consumer whose file is called ``name``; None for any other name."""
    return name.removeprefix(CONSUMER_PREFIX) if name.startswith(CONSUMER_PREFIX) else None


def branch_of(name: str) -> str | None:
    """Return the branch whose directory is called ``name``; None for any other name."""
    return name.removeprefix(BRANCH_PREFIX) if name.startswith(BRANCH_PREFIX) else None


def is_maintenance_record(name: str) -> bool:
    """Whether a file's name is that of a record of maintenance."""
    return name.startswith(_RECORD_PREFIX)


def is_bucket_name(name: str) -> bool:
    """Whether a directory's name is that of a bucket."""
    return name.startswith(_BUCKET_PREFIX)


def is_partition_name(name: str, key: str) -> bool:
    """Whether a directory's name is that of a partition by the column ``key``."""
    return name.startswith(_partition_name(key, ""))


def _partition_name(key: str, value: str) -> str:
    return f"{escape_path_name(key)}={escape_path_name(value)}"


def check_name(name: object, what: str, source: str) -> str:
    """Return the name of a file that the file ``source`` gives as ``what`` (a field), as it is.

    Raises CorruptTableError where it is no plain name: it could lead out of the table's directory.
    """
    if not isinstance(name, str) or not _is_plain(name):
        raise CorruptTableError(
            f"{source} has {name!r} as {what}, which is no name of a file in the table's directory: restore the file."
        )
    return name


def check_names(names: Sequence[str], what: str, source: str) -> None:
    """Raise as check_name for the first of many names that is no plain one; quick where all are."""
    joined = "".join(names)
    if "/" in joined or "\0" in joined or not _NO_NAMES.isdisjoint(names):
        for name in names:
            check_name(name, what, source)


def refuse_external_path(external_path: str | None, file_name: str) -> None:
    """Raise UnsupportedFeatureError for a file that a manifest places outside of the table's directory."""
    if external_path is not None:
        raise UnsupportedFeatureError(
            f"File {file_name} of the table lies at {external_path} (its _EXTERNAL_PATH): lakelsm has not built "
            "'data-file.external-paths' and opens nothing outside of a table's directory; use Apache Paimon for it."
        )


def _is_plain(name: str) -> bool:
    return name not in _NO_NAMES and "/" not in name and "\0" not in name


@dataclass(frozen=True)
class AttemptNames:
    """Names of all files that the tasks of one job write: their uuids begin with the same 60 random bits.

    So the files of a task can be told though its message was lost. ``new_uuid`` gives version 4 uuids.
    """

    mark: str
    new_uuid: Callable[[], str]

    @staticmethod
    def new(new_uuid: Callable[[], str]) -> AttemptNames:
        """Names that no other job has."""
        return AttemptNames(new_uuid()[:_MARK_LENGTH], new_uuid)

    def uuid(self) -> str:
        """Return the uuid for the names of one writer."""
        return self.mark + self.new_uuid()[_MARK_LENGTH:]

    def owns(self, file_name: str) -> bool:
        """Whether a file was written by this job."""
        return self.mark in file_name


class FileNames:
    """Names of the data and changelog files of one writer of a bucket: one uuid, one counter from 0."""

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid
        self._counter = 0

    def next(self, prefix: str, extension: str = "parquet") -> str:
        """Return a new file's name."""
        number = self._counter
        self._counter += 1
        return new_data_file_name(prefix, self._uuid, number, extension)


class CommitFileNames:
    """Names for the metadata files of one commit object: one uuid, one counter per kind of file, from 0."""

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


@dataclass(frozen=True)
class TablePaths:
    """Paths of the files of a branch of the table at ``root`` (a trailing slash is dropped).

    A branch has schemas, snapshots, tags, consumers and changelogs of its own; data, manifests, indexes and statistics of
    all branches lie together (docs/format.md 1). ``name`` is how every message names the table, after the word "table":
    'database.table' where a catalog opened it, else its root.
    """

    root: str
    name: str = field(default="", compare=False)
    branch: str = MAIN_BRANCH

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", _root(self.root))
        object.__setattr__(self, "name", self.name or self.root)

    def of_branch(self, branch: str) -> TablePaths:
        """The paths of another branch of the same table."""
        table = self.name.removesuffix(f"{BRANCH_MARK}{self.branch}")
        name = table if branch == MAIN_BRANCH else f"{table}{BRANCH_MARK}{branch}"
        return TablePaths(self.root, name, branch)

    @property
    def branch_root(self) -> str:
        """Directory of what the branch has for itself: the table's own for the main branch."""
        return self.root if self.branch == MAIN_BRANCH else f"{self.branches_dir}/{BRANCH_PREFIX}{self.branch}"

    @property
    def branches_dir(self) -> str:
        """Directory of the branches beside the main one."""
        return f"{self.root}/branch"

    @property
    def schema_dir(self) -> str:
        """Directory of the schema files."""
        return f"{self.branch_root}/schema"

    @property
    def snapshot_dir(self) -> str:
        """Directory of the snapshots and their two hints."""
        return f"{self.branch_root}/snapshot"

    @property
    def manifest_dir(self) -> str:
        """Directory of manifests, manifest lists and index manifests."""
        return f"{self.root}/manifest"

    @property
    def index_dir(self) -> str:
        """Directory of index files."""
        return f"{self.root}/index"

    @property
    def tag_dir(self) -> str:
        """Directory of the tags."""
        return f"{self.branch_root}/tag"

    @property
    def consumer_dir(self) -> str:
        """Directory of the consumers."""
        return f"{self.branch_root}/consumer"

    @property
    def changelog_dir(self) -> str:
        """Directory of long-lived changelogs and their two hints."""
        return f"{self.branch_root}/changelog"

    @property
    def statistics_dir(self) -> str:
        """Directory of the statistics files."""
        return f"{self.root}/statistics"

    @property
    def latest_hint(self) -> str:
        """File that holds the newest snapshot's id, perhaps stale or missing."""
        return f"{self.snapshot_dir}/LATEST"

    @property
    def earliest_hint(self) -> str:
        """File that holds the oldest snapshot's id, perhaps stale or missing."""
        return f"{self.snapshot_dir}/EARLIEST"

    @property
    def lookup_service(self) -> str:
        """File that holds the addresses of the servers of lakelsm's query service. Paimon's own has another id."""
        return f"{self.service_dir}/service-primary-key-lookup-flight"

    @property
    def service_dir(self) -> str:
        """Directory of what services keep: Paimon's, and lakelsm's own. No engine clears it up."""
        return f"{self.branch_root}/service"

    def maintenance_record(self, started: int, run: str) -> str:
        """Return the path of the record of a run of maintenance; names ascend with the time that they are given."""
        return f"{self.service_dir}/{_RECORD_PREFIX}{started:015d}-{run}"

    def lookup_lease(self, uuid: str) -> str:
        """Return the path of the file for as long as which the servers of one service on a cluster run."""
        return f"{self.service_dir}/.lakelsm-servers-{uuid}"

    def schema_file(self, schema_id: int) -> str:
        """Return the path of a schema file."""
        return f"{self.schema_dir}/{_SCHEMA_PREFIX}{schema_id}"

    def snapshot_file(self, snapshot_id: int) -> str:
        """Return the path of a snapshot file."""
        return f"{self.snapshot_dir}/{_SNAPSHOT_PREFIX}{snapshot_id}"

    def changelog(self, snapshot_id: int) -> str:
        """Return the path of a long-lived changelog file."""
        return f"{self.changelog_dir}/{_CHANGELOG_PREFIX}{snapshot_id}"

    def consumer(self, consumer_id: str) -> str:
        """Return the path of a consumer's file. Raises InvalidInputError on a name that leaves the directory."""
        if not consumer_id.strip() or not _is_plain(consumer_id):
            raise InvalidInputError(f"Consumer id {consumer_id!r} is blank, or has a slash or NUL: choose another.")
        return f"{self.consumer_dir}/{CONSUMER_PREFIX}{consumer_id}"

    def manifest(self, name: str) -> str:
        """Return the path of a manifest, manifest list or index manifest."""
        return f"{self.manifest_dir}/{name}"

    def index(self, name: str) -> str:
        """Return the path of an index file."""
        return f"{self.index_dir}/{name}"

    def statistics(self, name: str) -> str:
        """Return the path of a statistics file."""
        return f"{self.statistics_dir}/{name}"

    def tag(self, name: str) -> str:
        """Return the path of a tag file. Raises InvalidInputError on a name that leaves the directory."""
        if not name.strip() or not _is_plain(name):
            raise InvalidInputError(f"Tag name {name!r} is blank, or has a slash or NUL: choose another.")
        return f"{self.tag_dir}/{TAG_PREFIX}{name}"

    def partition_dir(self, partition: PartitionText) -> str:
        """Return the directory of a partition: the root where ``partition`` is empty.

        Raises InvalidInputError for a value that makes a name too long for a directory.
        """
        parts = [_partition_name(key, value) for key, value in partition]
        for (key, value), part in zip(partition, parts):
            size = len(part.encode())
            if size > LONGEST_NAME:
                raise InvalidInputError(
                    f"Partition value {key}={value[:40]!r}... makes a directory name of {size} bytes, and file systems "
                    f"take {LONGEST_NAME} at most: shorten the value, or choose another partition column."
                )
        return "/".join([self.root, *parts])

    def bucket_dir(self, partition: PartitionText, bucket: int) -> str:
        """Return the directory of a bucket's data files."""
        name = "postpone" if bucket == POSTPONE_BUCKET else str(bucket)
        return f"{self.partition_dir(partition)}/{_BUCKET_PREFIX}{name}"

    def data_file(self, partition: PartitionText, bucket: int, file_name: str) -> str:
        """Return the path of a data file."""
        return f"{self.bucket_dir(partition, bucket)}/{file_name}"


def _root(path: str) -> str:
    return path.rstrip("/") if path.strip("/") else path
