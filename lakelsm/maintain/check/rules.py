"""The rules of a sound table. Their names are in reports: do not change them. docs/check.md lists the rules."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(str, Enum):
    """The severity of a finding. Its value is its text.

    ``ERROR``: reads of a retained state fail or return wrong rows, or later writes will. ``WARNING``: rows are right, but
    the table is not as writers leave it.
    """

    ERROR = "error"
    WARNING = "warning"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Rule:
    """A rule: ``holds`` is a statement that is true for a sound table, ``remedy`` says what to do if it is false."""

    name: str
    severity: Severity
    holds: str
    remedy: str


_RESTORE = (
    "Restore the file from a copy. Otherwise roll back to a state that does not need it, and delete the tags that do."
)
_REWRITE = "Compact the bucket fully, which writes the file again. If rows are wrong, write or overwrite them."
_OVERWRITE = "Overwrite the partition with its rows, which writes files and indexes again."
#: Remedies of many rules, by the words that docs/check.md has for them.
COMMON_REMEDIES = {"restore": _RESTORE, "rewrite": _REWRITE, "overwrite": _OVERWRITE}


def _error(name: str, holds: str, remedy: str) -> Rule:
    return Rule(name, Severity.ERROR, holds, remedy)


def _warning(name: str, holds: str, remedy: str) -> Rule:
    return Rule(name, Severity.WARNING, holds, remedy)


SCHEMA_UNREADABLE = _error(
    "schema-unreadable",
    "every schema file exists, parses and matches the snapshots, including each that a snapshot or data file names",
    _RESTORE,
)
SNAPSHOT_UNREADABLE = _error(
    "snapshot-unreadable", "every snapshot file parses and contains the id in its name", _RESTORE
)
SNAPSHOT_GAP = _error(
    "snapshot-gap",
    "the ids of snapshots have no gap",
    "Restore the missing snapshot files. Otherwise roll back to a snapshot below the gap, or write the id above it "
    "to the EARLIEST hint and expire snapshots, which deletes those below.",
)
LATEST_HINT = _error(
    "latest-hint",
    "the LATEST hint, if it exists, names an existing snapshot",
    "Delete the hint, or write the newest snapshot's id to it: Apache Paimon fails if it is too high.",
)
EXPIRY_UNFINISHED = _warning(
    "expiry-unfinished",
    "no snapshot below the EARLIEST hint exists",
    "Expire snapshots again: this completes the interrupted run. Do not read these snapshots until then.",
)
ROLLBACK_UNFINISHED = _warning(
    "rollback-unfinished",
    "no rollback is incomplete; an incomplete one stops expiry and may have restored a snapshot below a gap",
    "Roll back to the same snapshot again: this completes it.",
)
STALE_HINT = _warning(
    "stale-hint",
    "the LATEST hint names the newest snapshot, and the EARLIEST hint an existing one",
    "Delete the hint. Readers find the snapshot by listing, and the next commit or expiry writes the hint.",
)
SNAPSHOT_COUNTS = _error(
    "snapshot-counts",
    "the record counts of a snapshot match its manifests, files and changelog",
    "Restore the snapshot file. Rows are right, but counts from metadata are wrong.",
)
TAG_UNREADABLE = _error(
    "tag-unreadable", "every tag file parses", "Restore the file, or delete the tag: nothing expires while it exists."
)
CHANGELOG_UNREADABLE = _error(
    "changelog-unreadable",
    "every long-lived changelog parses and contains the id in its name",
    "Restore the file, or delete it.",
)
CHANGELOG_GAP = _warning(
    "changelog-gap",
    "the ids of long-lived changelogs have no gap",
    "Restore the missing files. Readers of the changelog cannot continue across the gap.",
)
CONSUMER_UNREADABLE = _error(
    "consumer-unreadable",
    "the file of every consumer names the snapshot that it reads next",
    "Reset the consumer, or delete it: nothing expires until then.",
)
CONSUMER_BEHIND = _warning(
    "consumer-behind",
    "the next snapshot of a consumer has not expired",
    "Reset the consumer to an existing snapshot. The changes in between are lost.",
)
BRANCH_UNREADABLE = _error(
    "branch-unreadable",
    "every branch with snapshots has its schemas",
    "Restore the branch's schema files, or delete the branch.",
)
BRANCH_UNFINISHED = _warning(
    "branch-unfinished",
    "no branch is incomplete; an incomplete one has no first schema, cannot be opened, and keeps the files it names",
    "Repeat the creation or renaming of the branch, which completes it, or delete the branch.",
)
TAG_UNFINISHED = _warning(
    "tag-unfinished",
    "no holding tag remains from the creation, renaming or replacement of another tag",
    "Create the tag again. The holding tag keeps files for an hour and then expires with other tags.",
)
STATISTICS_UNREADABLE = _warning(
    "statistics-unreadable", "the statistics file of a snapshot exists and parses", "Analyze the table again."
)
MANIFEST_LIST_UNREADABLE = _error(
    "manifest-list-unreadable",
    "every manifest list of a retained state exists, has its recorded size and parses",
    _RESTORE,
)
MANIFEST_UNREADABLE = _error(
    "manifest-unreadable",
    "every manifest of a retained state exists, has its recorded size, parses, and has valid numbers",
    _RESTORE,
)
MANIFEST_TWICE = _error("manifest-twice", "the manifest lists of a snapshot name no manifest twice", _RESTORE)
MANIFEST_COUNTS = _error(
    "manifest-counts",
    "a manifest list records the right number of entries of each manifest; readers skip manifests by it",
    _RESTORE,
)
MANIFEST_RANGES = _error(
    "manifest-ranges",
    "the partitions, buckets and levels of a manifest are within the ranges of its list; readers skip manifests by them",
    _RESTORE,
)
MANIFEST_STRAY = _warning(
    "manifest-stray",
    "every manifest, manifest list and index manifest is named by a retained state",
    "Nothing while a commit is in progress: it names its files at its end. Otherwise remove orphan files when they are "
    "old enough.",
)
FILE_TWICE = _error("file-twice", "no state adds a data file twice", _RESTORE)
FILE_NOT_ADDED = _warning(
    "file-not-added", "a state deletes only files that it adds", "Restore the manifests. Readers ignore the deletion."
)
FILE_ENTRY = _error(
    "file-entry",
    "an entry has at least one row, no negative sequence number, ordered keys, and a file in the table's directory",
    _RESTORE,
)
DATA_FILE_MISSING = _error("data-file-missing", "every data file of a retained state exists", _RESTORE)
DATA_FILE_SIZE = _error("data-file-size", "a data file has the size in its entry", _RESTORE)
CHANGELOG_FILE_MISSING = _error(
    "changelog-file-missing", "every changelog file of a retained snapshot or changelog exists", _RESTORE
)
CHANGELOG_FILE_SIZE = _error("changelog-file-size", "a changelog file has the size in its entry", _RESTORE)
CHANGELOG_DELETED = _error(
    "changelog-entry", "the changelog manifests of a snapshot only add files", "Restore the manifest."
)
DATA_FILE_FORMAT = _warning(
    "data-file-format",
    "every data and changelog file that the check opens is a Parquet file",
    "Check the rows of these files with Apache Paimon, or rewrite them there in Parquet.",
)
FILE_INDEX_MISSING = _error(
    "file-index-missing",
    "the extra files of a data file, such as its indexes, exist",
    "Restore the file, or compact the bucket fully; reads with 'file-index.read.enabled' = 'false' ignore indexes.",
)
INDEX_MANIFEST_UNREADABLE = _error(
    "index-manifest-unreadable", "every index manifest of a retained state exists and parses", _RESTORE
)
INDEX_FILE_MISSING = _error("index-file-missing", "every index file of a retained state exists", _RESTORE)
INDEX_FILE_SIZE = _error("index-file-size", "an index file has the size in its index manifest", _RESTORE)
LEVEL_OVERLAP = _error(
    "level-overlap",
    "the files of one level above 0 of a bucket do not overlap",
    "Roll back to a snapshot before the overlap. A read may return two rows of one key.",
)
LEVEL_BEYOND = _warning(
    "level-beyond", "no file is on a level beyond 'num-levels'", "Raise 'num-levels', or compact the bucket fully."
)
LEVEL_ORDER = _warning(
    "level-order",
    "no file has only older rows than a file of a higher level that it overlaps",
    "Compact the bucket fully, which merges by sequence numbers.",
)
SEQUENCE_RANGE = _error(
    "sequence-range",
    "no live file has a sequence number above the maximum in the snapshot, from which writers continue",
    "Restore the snapshot file. Rows that are written with too low numbers lose to older rows.",
)
BUCKET_COUNT = _error(
    "bucket-count",
    "all files of a partition have the recorded number of buckets, and no file is in a bucket beyond it",
    _OVERWRITE,
)
VECTOR_PLACE = _error(
    "vector-place",
    "the index manifest names at most one deletion vector for each data file, with a valid range and row count",
    _RESTORE,
)
VECTOR_WITHOUT_FILE = _warning(
    "vector-without-file",
    "if lakelsm wrote all retained snapshots, every deletion vector is of a live data file (Java leaves others)",
    "Roll back if replaced rows are visible again. Otherwise the next compaction that masks rows of the bucket "
    "removes it.",
)
HASH_INDEX_PLACE = _error(
    "hash-index-place", "each dynamic bucket has one HASH index, and no other bucket has one", _OVERWRITE
)
VECTOR_UNREADABLE = _error(
    "vector-unreadable",
    "a deletion vector decodes, masks as many rows as the index manifest says, and only rows of its data file",
    _RESTORE,
)
HASH_INDEX_UNREADABLE = _error(
    "hash-index-unreadable", "a HASH index decodes and has as many hashes as the index manifest says", _RESTORE
)
HASH_INDEX_TWICE = _error(
    "hash-index-twice", "the HASH indexes of a partition contain each hash once, so a key has one bucket", _OVERWRITE
)
HASH_INDEX_KEYS = _error(
    "hash-index-keys", "the HASH index of a bucket contains the hash of each key in its files", _OVERWRITE
)
DATA_FILE_FOOTER = _error("data-file-footer", "the footer of a data file matches its entry", _RESTORE)
DATA_FILE_UNREADABLE = _error("data-file-unreadable", "all rows of a data file decode", _RESTORE)
ROW_ORDER = _error("row-order", "the rows of a data file ascend by key, and no key occurs twice", _REWRITE)
KEY_RANGE = _error("key-range", "the first and the last key of a file match its entry", _REWRITE)
ROW_SEQUENCES = _error("row-sequences", "the sequence numbers of a file are within the range in its entry", _REWRITE)
ROW_KINDS = _error("row-kinds", "a file has as many retractions as its entry says, and no unknown row kind", _REWRITE)
ROW_BUCKET = _error("row-bucket", "every key of a data file belongs to its bucket", _OVERWRITE)
ROW_PARTITION = _error("row-partition", "the rows of a file have the values of its partition", _OVERWRITE)
STATISTICS = _error(
    "column-statistics", "the statistics of an entry cover all values of the file and count its NULLs", _REWRITE
)
FILE_INDEX_UNREADABLE = _error(
    "file-index-unreadable",
    "the indexes of a data file decode",
    "Compact the bucket fully; reads with 'file-index.read.enabled' = 'false' ignore indexes.",
)
FILE_INDEX_FALSE = _error(
    "file-index-false",
    "the indexes of a data file exclude no value that it contains",
    "Compact the bucket fully; reads with 'file-index.read.enabled' = 'false' ignore indexes.",
)
KEY_TWICE = _error(
    "key-twice",
    "with deletion vectors or `first-row`, a key has at most one unmasked row above level 0",
    "Roll back to an earlier snapshot, or overwrite the partition with its rows.",
)

#: All rules by name.
RULES = {rule.name: rule for rule in list(globals().values()) if isinstance(rule, Rule)}
