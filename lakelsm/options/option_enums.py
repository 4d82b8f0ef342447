"""Values of options that choose between named behaviours (docs/format.md 17).

All are persisted, except those of `Feature`: do not change them.
"""

from __future__ import annotations

from enum import Enum


class MergeEngine(Enum):
    """The rule that makes one row of all rows of a key."""

    DEDUPLICATE = "deduplicate"
    PARTIAL_UPDATE = "partial-update"
    AGGREGATION = "aggregation"
    FIRST_ROW = "first-row"


class ChangelogProducer(Enum):
    """The source of a table's changelog."""

    NONE = "none"
    INPUT = "input"
    FULL_COMPACTION = "full-compaction"
    LOOKUP = "lookup"


class SortOrder(Enum):
    """The sequence value that wins: the largest (ascending) or the smallest (descending)."""

    ASCENDING = "ascending"
    DESCENDING = "descending"


class BucketFunction(Enum):
    """The function from the bucket key to a bucket number."""

    DEFAULT = "default"
    MOD = "mod"
    HIVE = "hive"


class ScanMode(Enum):
    """The state that a scan starts from; as an option of a table, only the newest one is supported."""

    DEFAULT = "default"
    LATEST_FULL = "latest-full"
    FULL = "full"
    LATEST = "latest"
    LATEST_DELTA = "latest-delta"
    COMPACTED_FULL = "compacted-full"
    FROM_TIMESTAMP = "from-timestamp"
    FROM_CREATION_TIMESTAMP = "from-creation-timestamp"
    FROM_FILE_CREATION_TIME = "from-file-creation-time"
    FROM_SNAPSHOT = "from-snapshot"
    FROM_SNAPSHOT_FULL = "from-snapshot-full"
    INCREMENTAL = "incremental"


class ConsumerMode(Enum):
    """Whether the changes of one snapshot are in one batch of a stream with a consumer, or limits may divide them."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


class LookupCompact(Enum):
    """The rule by which a compaction that looks rows up takes level 0: always, or only when it has grown enough."""

    RADICAL = "radical"
    GENTLE = "gentle"


class LookupCache(Enum):
    """The cache that answers lookups."""

    AUTO = "auto"
    FULL = "full"
    PARTIAL = "partial"
    MEMORY = "memory"


class StoreKind(Enum):
    """The format of the files that a partial lookup cache builds from data files."""

    ARROW = "arrow"
    SORT = "sort"
    HASH = "hash"


class TagCreation(Enum):
    """Whether commits create tags, and what ends a period."""

    NONE = "none"
    PROCESS_TIME = "process-time"
    WATERMARK = "watermark"
    BATCH = "batch"


class TagPeriod(Enum):
    """The period of automatic tags."""

    DAILY = "daily"
    HOURLY = "hourly"
    TWO_HOURS = "two-hours"


class TagFormat(Enum):
    """The format of the names of automatic tags."""

    WITH_DASHES = "with_dashes"
    WITHOUT_DASHES = "without_dashes"
    WITHOUT_DASHES_AND_SPACES = "without_dashes_and_spaces"


class MarkDoneMode(Enum):
    """The clock that tells whether a partition is done by its time: that of commits, or watermarks."""

    PROCESS_TIME = "process-time"
    WATERMARK = "watermark"


class ExpireMode(Enum):
    """The thread of the maintenance that follows a commit: the committing thread, or a separate one."""

    SYNC = "sync"
    ASYNC = "async"


class Feature(Enum):
    """Features that lakelsm does not support yet. Their options are accepted and stored, without effect."""

    APPEND_TABLES = "tables without a primary key"
    CONCURRENT_COMPACTION = "compaction concurrent with writes"
    CROSS_PARTITION = "cross-partition updates"
    EXPLICIT_CASTS = "type changes by explicit casts"
    ORC = "ORC files"
    OTHER_CATALOGS = "catalogs other than the file system's"
    POSTPONED_BUCKETS = "postponed buckets"
    STREAMING = "streaming jobs of Flink"
