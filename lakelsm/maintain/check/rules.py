"""The rules that a sound table keeps. Schedulers and people know them by their names: do not change these.

docs/check.md tells of each what it means.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(str, Enum):
    """What a finding means. It is its text.

    ``ERROR``: reads of a retained state fail or give wrong rows, or will. ``WARNING``: rows are right, but something is
    not as a writer leaves it.
    """

    ERROR = "error"
    WARNING = "warning"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Rule:
    """``holds`` says what is true of a sound table, ``remedy`` what to do where it is not."""

    name: str
    severity: Severity
    holds: str
    remedy: str


_RESTORE = "Restore the file from a copy; else roll back to a state that does not need it, and remove the tags that do."
_ROLL_BACK = "Roll back to a snapshot without it, and write again what came after."
_REWRITE = "Compact the bucket in full, which writes the file anew; where rows are wrong, write or overwrite them."
_OVERWRITE = "Overwrite the partition with its rows, which writes files and indexes anew."


def _error(name: str, holds: str, remedy: str) -> Rule:
    return Rule(name, Severity.ERROR, holds, remedy)


def _warning(name: str, holds: str, remedy: str) -> Rule:
    return Rule(name, Severity.WARNING, holds, remedy)


SCHEMA_UNREADABLE = _error(
    "schema-unreadable",
    "every schema file, and each that a snapshot or a data file names, is there, parses, and is what snapshots know",
    _RESTORE,
)
SNAPSHOT_UNREADABLE = _error("snapshot-unreadable", "every snapshot file parses and has the id of its name", _RESTORE)
SNAPSHOT_GAP = _error(
    "snapshot-gap",
    "the ids of snapshots have no gap",
    "Restore the missing snapshot files; else roll back to a snapshot below the gap, or write the id above it to the "
    "EARLIEST hint and expire snapshots, which removes those below.",
)
LATEST_HINT = _error(
    "latest-hint",
    "the LATEST hint, where there is one, names a snapshot that exists",
    "Delete the hint, or write the newest snapshot's id to it: Apache Paimon fails on one that is too high.",
)
EXPIRY_UNFINISHED = _warning(
    "expiry-unfinished",
    "no snapshot below the one that the EARLIEST hint names is left",
    "Expire snapshots again: the next run finishes what a killed one began. Until then these are not to be read.",
)
ROLLBACK_UNFINISHED = _warning(
    "rollback-unfinished",
    "no rollback is half-way, which holds expiry and may have put a snapshot back below a gap",
    "Roll back to the same snapshot again: that finishes it.",
)
STALE_HINT = _warning(
    "stale-hint",
    "the LATEST hint names the newest snapshot, and EARLIEST one that is there",
    "Delete the hint; readers find the snapshot by listing, and the next commit or expiry writes it.",
)
SNAPSHOT_COUNTS = _error(
    "snapshot-counts",
    "a snapshot's record counts are those of its manifests, of its files and of its changelog",
    "Restore the snapshot file; rows are right, but counts from metadata are not.",
)
TAG_UNREADABLE = _error(
    "tag-unreadable", "every tag file parses", "Restore the file, or delete the tag: while it stays, nothing expires."
)
CHANGELOG_UNREADABLE = _error(
    "changelog-unreadable", "every long-lived changelog parses, with its own id", "Restore the file, or delete it."
)
CHANGELOG_GAP = _warning(
    "changelog-gap",
    "the ids of long-lived changelogs have no gap",
    "Restore the missing files; readers of the changelog cannot go on through the gap.",
)
CONSUMER_UNREADABLE = _error(
    "consumer-unreadable",
    "every consumer's file says which snapshot it reads next",
    "Reset the consumer, or delete it: while it stays as it is, nothing expires.",
)
CONSUMER_BEHIND = _warning(
    "consumer-behind",
    "what a consumer reads next has not expired",
    "Reset the consumer to a snapshot that is there; the changes in between are gone.",
)
BRANCH_UNREADABLE = _error(
    "branch-unreadable",
    "every branch that was written to has its schemas",
    "Restore the branch's schema files, or delete the branch.",
)
BRANCH_UNFINISHED = _warning(
    "branch-unfinished",
    "no branch is half-way: without its first schema nobody can open it, and it keeps the files that it names",
    "Create or rename the branch again in the same way, which goes on where it stopped; or delete the branch.",
)
TAG_UNFINISHED = _warning(
    "tag-unfinished",
    "no tag is left that held a snapshot while another tag was made, renamed or replaced",
    "Make the tag again. What is left keeps files until its time is over (an hour), and goes with other expired tags.",
)
STATISTICS_UNREADABLE = _warning(
    "statistics-unreadable", "the statistics file of a snapshot is there and parses", "Analyze the table again."
)
MANIFEST_LIST_UNREADABLE = _error(
    "manifest-list-unreadable", "every manifest list of a retained state is there, has its size and parses", _RESTORE
)
MANIFEST_UNREADABLE = _error(
    "manifest-unreadable",
    "every manifest of a retained state is there, has its size, parses, and its numbers can be",
    _RESTORE,
)
MANIFEST_TWICE = _error("manifest-twice", "a snapshot's lists name a manifest once", _RESTORE)
MANIFEST_COUNTS = _error(
    "manifest-counts",
    "a manifest list has the right numbers of entries of each manifest, by which readers leave manifests out",
    _RESTORE,
)
MANIFEST_RANGES = _error(
    "manifest-ranges",
    "the partitions, buckets and levels of a manifest lie in the ranges that its list gives, which scans go by",
    _RESTORE,
)
MANIFEST_STRAY = _warning(
    "manifest-stray",
    "a retained state names each manifest, manifest list and index manifest",
    "None while a commit is under way, which names its files at its end. Else remove orphan files, once they are old "
    "enough.",
)
FILE_TWICE = _error("file-twice", "a state adds a data file once", _RESTORE)
FILE_NOT_ADDED = _warning(
    "file-not-added", "a state deletes only files that it adds", "Restore the manifests; readers pass over the deletion."
)
FILE_ENTRY = _error(
    "file-entry",
    "an entry has rows, sequence numbers from 0 and keys in order, and its file lies in the table's directory",
    _RESTORE,
)
DATA_FILE_MISSING = _error("data-file-missing", "every data file of a retained state is there", _RESTORE)
DATA_FILE_SIZE = _error("data-file-size", "a data file has the size that its entry says", _RESTORE)
CHANGELOG_FILE_MISSING = _error(
    "changelog-file-missing", "every changelog file of a retained snapshot or changelog is there", _RESTORE
)
CHANGELOG_FILE_SIZE = _error("changelog-file-size", "a changelog file has the size that its entry says", _RESTORE)
CHANGELOG_DELETED = _error(
    "changelog-entry", "the changelog manifests of a snapshot only add files", "Restore the manifest."
)
DATA_FILE_FORMAT = _warning(
    "data-file-format",
    "every data and changelog file that a check opens has the format Parquet",
    "Check the rows of these files with Apache Paimon, or rewrite them there in Parquet.",
)
FILE_INDEX_MISSING = _error(
    "file-index-missing",
    "the extra files of a data file, as its indexes, are there",
    "Restore the file, or compact the bucket in full; reads without 'file-index.read.enabled' pass over indexes.",
)
INDEX_MANIFEST_UNREADABLE = _error(
    "index-manifest-unreadable", "every index manifest of a retained state is there and parses", _RESTORE
)
INDEX_FILE_MISSING = _error("index-file-missing", "every index file of a retained state is there", _RESTORE)
INDEX_FILE_SIZE = _error("index-file-size", "an index file has the size that its index manifest says", _RESTORE)
LEVEL_OVERLAP = _error(
    "level-overlap",
    "the files of one level above 0 of a bucket do not overlap",
    "Roll back to a snapshot before the overlap; a read may show rows of one key twice.",
)
LEVEL_BEYOND = _warning(
    "level-beyond", "no file lies above the levels of 'num-levels'", "Raise 'num-levels', or compact the bucket in full."
)
LEVEL_ORDER = _warning(
    "level-order",
    "where files of two levels overlap, the lower level does not have older rows alone",
    "Compact the bucket in full, which merges by sequence numbers.",
)
SEQUENCE_RANGE = _error(
    "sequence-range",
    "no live file has a sequence number beyond the bound that the snapshot records, from which writers go on",
    "Restore the snapshot file; rows that are written under too low numbers lose to older ones.",
)
BUCKET_COUNT = _error(
    "bucket-count",
    "the files of a partition say one number of buckets, which is the recorded one, and none lies beyond it",
    _OVERWRITE,
)
VECTOR_PLACE = _error(
    "vector-place", "the index manifest says of each data file one possible place of its deletion vector", _RESTORE
)
VECTOR_WITHOUT_FILE = _warning(
    "vector-without-file",
    "where all retained snapshots are of lakelsm, a deletion vector is of a live data file (Java leaves others)",
    "Roll back where replaced rows are shown again; else the next compaction that masks rows of the bucket removes it.",
)
HASH_INDEX_PLACE = _error(
    "hash-index-place", "dynamic buckets have one HASH index each, and no other buckets have one", _OVERWRITE
)
VECTOR_UNREADABLE = _error(
    "vector-unreadable",
    "a deletion vector decodes, masks as many rows as the index manifest says, and only rows that its data file has",
    _RESTORE,
)
HASH_INDEX_UNREADABLE = _error("hash-index-unreadable", "a HASH index decodes, with as many hashes as are said", _RESTORE)
HASH_INDEX_TWICE = _error(
    "hash-index-twice", "the HASH indexes of a partition have each hash once, so that a key has one bucket", _OVERWRITE
)
HASH_INDEX_KEYS = _error(
    "hash-index-keys", "the HASH index of a bucket has the hash of each key in its files", _OVERWRITE
)
DATA_FILE_FOOTER = _error("data-file-footer", "a data file's footer is the one that its entry means", _RESTORE)
DATA_FILE_UNREADABLE = _error("data-file-unreadable", "all rows of a data file decode", _RESTORE)
ROW_ORDER = _error("row-order", "the rows of a data file ascend by key, and no key is there twice", _REWRITE)
KEY_RANGE = _error("key-range", "the first and the last key of a file's rows are those that its entry says", _REWRITE)
ROW_SEQUENCES = _error(
    "row-sequences", "the sequence numbers of a file's rows have the range that its entry says", _REWRITE
)
ROW_KINDS = _error(
    "row-kinds", "a file has as many retractions as its entry says, and no row of an unknown kind", _REWRITE
)
ROW_BUCKET = _error("row-bucket", "every key of a data file belongs to its bucket", _OVERWRITE)
ROW_PARTITION = _error("row-partition", "the rows of a file have the values of its partition", _OVERWRITE)
STATISTICS = _error(
    "column-statistics", "the statistics of an entry leave no value of the file out, and count its NULLs", _REWRITE
)
FILE_INDEX_UNREADABLE = _error(
    "file-index-unreadable",
    "the indexes of a data file decode",
    "Compact the bucket in full; reads without 'file-index.read.enabled' pass over indexes.",
)
FILE_INDEX_FALSE = _error(
    "file-index-false",
    "the indexes of a data file deny no value that it has",
    "Compact the bucket in full; reads without 'file-index.read.enabled' pass over indexes.",
)
KEY_TWICE = _error(
    "key-twice",
    "with deletion vectors or `first-row` a key has one row above level 0 that is not masked",
    "Roll back to a snapshot before it, or overwrite the partition with its rows.",
)

#: All of them by name.
RULES = {rule.name: rule for rule in list(globals().values()) if isinstance(rule, Rule)}
