"""The paths of a table's files (docs/format.md 1 and 2); `lakelsm.format.file_names` makes the names.

Paths are plain strings below the table's root. The storage package handles URIs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakelsm.arguments import BRANCH_PREFIX, CONSUMER_PREFIX, LONGEST_NAME, TAG_PREFIX
from lakelsm.errors import InvalidInputError
from lakelsm.format.file_names import (
    BUCKET_PREFIX,
    CHANGELOG_PREFIX,
    RECORD_PREFIX,
    ROLLBACK_NAME,
    SCHEMA_PREFIX,
    SNAPSHOT_PREFIX,
    is_plain,
    partition_name,
)

#: Partition column names, each with the text of its value (see partition_text), in the order of the partition key.
PartitionText = Sequence[tuple[str, str]]

#: ``_BUCKET`` of rows that get their bucket in a later compaction. Persisted: do not change
POSTPONE_BUCKET = -2

#: The suffix of database directories in a warehouse.
DATABASE_SUFFIX = ".db"

#: The branch that every table has: the table itself.
MAIN_BRANCH = "main"

#: Separates the name of a table from that of a branch, as in Paimon's identifiers.
BRANCH_SEPARATOR = "$branch_"


def database_path(warehouse: str, database: str) -> str:
    """Return the directory of a database: ``<warehouse>/<database>.db``."""
    return f"{_root(warehouse)}/{database}{DATABASE_SUFFIX}"


def table_path(warehouse: str, database: str, table: str) -> str:
    """Return the root directory of a table in the file-system catalog."""
    return f"{database_path(warehouse, database)}/{table}"


@dataclass(frozen=True)
class TablePaths:
    """Paths of the files of one branch of the table at ``root``. A trailing slash of ``root`` is removed.

    A branch has its own schemas, snapshots, tags, consumers and changelogs. Branches share the directories of data,
    manifests, indexes and statistics (docs/format.md 1). ``name`` is the table in messages, after the word "Table":
    'database.table' if a catalog opened it, else its root.
    """

    root: str
    name: str = field(default="", compare=False)
    branch: str = MAIN_BRANCH

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", _root(self.root))
        object.__setattr__(self, "name", self.name or self.root)

    def of_branch(self, branch: str) -> TablePaths:
        """Return the paths of another branch of the same table."""
        table = self.name.removesuffix(f"{BRANCH_SEPARATOR}{self.branch}")
        name = table if branch == MAIN_BRANCH else f"{table}{BRANCH_SEPARATOR}{branch}"
        return TablePaths(self.root, name, branch)

    @property
    def branch_root(self) -> str:
        """The directory of what each branch has separately; for the main branch it is the table's root."""
        return self.root if self.branch == MAIN_BRANCH else f"{self.branches_dir}/{BRANCH_PREFIX}{self.branch}"

    @property
    def branches_dir(self) -> str:
        """The directory of all branches except the main one."""
        return f"{self.root}/branch"

    @property
    def schema_dir(self) -> str:
        """The directory of the schema files."""
        return f"{self.branch_root}/schema"

    @property
    def snapshot_dir(self) -> str:
        """The directory of the snapshots and their two hints."""
        return f"{self.branch_root}/snapshot"

    @property
    def manifest_dir(self) -> str:
        """The directory of manifests, manifest lists and index manifests."""
        return f"{self.root}/manifest"

    @property
    def index_dir(self) -> str:
        """The directory of index files."""
        return f"{self.root}/index"

    @property
    def tag_dir(self) -> str:
        """The directory of the tags."""
        return f"{self.branch_root}/tag"

    @property
    def consumer_dir(self) -> str:
        """The directory of the consumers."""
        return f"{self.branch_root}/consumer"

    @property
    def changelog_dir(self) -> str:
        """The directory of long-lived changelogs and their two hints."""
        return f"{self.branch_root}/changelog"

    @property
    def statistics_dir(self) -> str:
        """The directory of the statistics files."""
        return f"{self.root}/statistics"

    @property
    def latest_hint(self) -> str:
        """The file with the id of the newest snapshot. The id may be outdated, and the file may be missing."""
        return f"{self.snapshot_dir}/LATEST"

    @property
    def earliest_hint(self) -> str:
        """The file with the id of the earliest snapshot. The id may be outdated, and the file may be missing."""
        return f"{self.snapshot_dir}/EARLIEST"

    @property
    def lookup_service(self) -> str:
        """The file with the server addresses of lakelsm's query service. Paimon's service has another id."""
        return f"{self.service_dir}/service-primary-key-lookup-flight"

    @property
    def service_dir(self) -> str:
        """The directory for files of services, both Paimon's and lakelsm's. No engine deletes them."""
        return f"{self.branch_root}/service"

    def maintenance_record(self, started: int, run: str) -> str:
        """Return the path of the record of a maintenance run. The names sort by start time."""
        return f"{self.service_dir}/{RECORD_PREFIX}{started:015d}-{run}"

    @property
    def last_rollback(self) -> str:
        """The file with the id and fingerprint of the snapshot to which the branch was last rolled back."""
        return f"{self.service_dir}/{ROLLBACK_NAME}"

    def lookup_lease(self, uuid: str) -> str:
        """Return the path of the lease file of a service on a cluster: its servers run while the file exists."""
        return f"{self.service_dir}/.lakelsm-servers-{uuid}"

    def schema_file(self, schema_id: int) -> str:
        """Return the path of a schema file."""
        return f"{self.schema_dir}/{SCHEMA_PREFIX}{schema_id}"

    def snapshot_file(self, snapshot_id: int) -> str:
        """Return the path of a snapshot file."""
        return f"{self.snapshot_dir}/{SNAPSHOT_PREFIX}{snapshot_id}"

    def changelog(self, snapshot_id: int) -> str:
        """Return the path of a long-lived changelog file."""
        return f"{self.changelog_dir}/{CHANGELOG_PREFIX}{snapshot_id}"

    def consumer(self, consumer_id: str) -> str:
        """Return the path of a consumer's file. Raises InvalidInputError for a name that leaves the directory."""
        if not consumer_id.strip() or not is_plain(consumer_id):
            raise InvalidInputError(f"Consumer id {consumer_id!r} is blank, or contains a slash or NUL. Use another id.")
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
        """Return the path of a tag file. Raises InvalidInputError for a name that leaves the directory."""
        if not name.strip() or not is_plain(name):
            raise InvalidInputError(f"Tag name {name!r} is blank, or contains a slash or NUL. Use another name.")
        return f"{self.tag_dir}/{TAG_PREFIX}{name}"

    def partition_dir(self, partition: PartitionText) -> str:
        """Return the directory of a partition: the root if ``partition`` is empty.

        Raises InvalidInputError for a value whose directory name is too long.
        """
        parts = [partition_name(key, value) for key, value in partition]
        for (key, value), part in zip(partition, parts):
            size = len(part.encode())
            if size > LONGEST_NAME:
                raise InvalidInputError(
                    f"Partition value {key}={value[:40]!r}... has a directory name of {size} bytes; file systems allow "
                    f"{LONGEST_NAME}. Shorten the value, or partition by another column."
                )
        return "/".join([self.root, *parts])

    def bucket_dir(self, partition: PartitionText, bucket: int) -> str:
        """Return the directory of a bucket's data files."""
        name = "postpone" if bucket == POSTPONE_BUCKET else str(bucket)
        return f"{self.partition_dir(partition)}/{BUCKET_PREFIX}{name}"

    def data_file(self, partition: PartitionText, bucket: int, file_name: str) -> str:
        """Return the path of a data file."""
        return f"{self.bucket_dir(partition, bucket)}/{file_name}"


def _root(path: str) -> str:
    return path.rstrip("/") if path.strip("/") else path
