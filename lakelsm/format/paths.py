"""The path of each file of a table (docs/format.md 1 and 2); `lakelsm.format.file_names` has the names.

Paths are plain strings under the table's root; URIs are the storage package's business.
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

#: Partition column names with the text of their values (see partition_text), in partition-key order.
PartitionText = Sequence[tuple[str, str]]

#: ``_BUCKET`` of rows that wait for a compaction to be given a bucket. Persisted: do not change
POSTPONE_BUCKET = -2

#: How the names of a warehouse's databases end.
DATABASE_SUFFIX = ".db"

#: The branch that every table has: the table itself.
MAIN_BRANCH = "main"

#: Between a table's name and that of one of its branches, as in Paimon's identifiers.
BRANCH_SEPARATOR = "$branch_"


def database_path(warehouse: str, database: str) -> str:
    """Return the directory of a database: ``<warehouse>/<database>.db``."""
    return f"{_root(warehouse)}/{database}{DATABASE_SUFFIX}"


def table_path(warehouse: str, database: str, table: str) -> str:
    """Return the root directory of a table of the file-system catalog."""
    return f"{database_path(warehouse, database)}/{table}"


@dataclass(frozen=True)
class TablePaths:
    """Paths of the files of a branch of the table at ``root`` (a trailing slash is dropped).

    A branch has its own schemas, snapshots, tags, consumers and changelogs; data, manifests, indexes and statistics of
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
        table = self.name.removesuffix(f"{BRANCH_SEPARATOR}{self.branch}")
        name = table if branch == MAIN_BRANCH else f"{table}{BRANCH_SEPARATOR}{branch}"
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
        """File that holds the newest snapshot's id, which may be behind or missing."""
        return f"{self.snapshot_dir}/LATEST"

    @property
    def earliest_hint(self) -> str:
        """File that holds the oldest snapshot's id, which may be behind or missing."""
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
        return f"{self.service_dir}/{RECORD_PREFIX}{started:015d}-{run}"

    @property
    def last_rollback(self) -> str:
        """File that holds the id and the fingerprint of the snapshot that the branch was last rolled back to."""
        return f"{self.service_dir}/{ROLLBACK_NAME}"

    def lookup_lease(self, uuid: str) -> str:
        """Return the path of the file for as long as which the servers of one service on a cluster run."""
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
        """Return the path of a consumer's file. Raises InvalidInputError on a name that leaves the directory."""
        if not consumer_id.strip() or not is_plain(consumer_id):
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
        if not name.strip() or not is_plain(name):
            raise InvalidInputError(f"Tag name {name!r} is blank, or has a slash or NUL: choose another.")
        return f"{self.tag_dir}/{TAG_PREFIX}{name}"

    def partition_dir(self, partition: PartitionText) -> str:
        """Return the directory of a partition: the root where ``partition`` is empty.

        Raises InvalidInputError for a value that makes a name too long for a directory.
        """
        parts = [partition_name(key, value) for key, value in partition]
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
        return f"{self.partition_dir(partition)}/{BUCKET_PREFIX}{name}"

    def data_file(self, partition: PartitionText, bucket: int, file_name: str) -> str:
        """Return the path of a data file."""
        return f"{self.bucket_dir(partition, bucket)}/{file_name}"


def _root(path: str) -> str:
    return path.rstrip("/") if path.strip("/") else path
