"""Values of the options that choose between named behaviours (docs/format.md 17).

Those of `Feature` name what options wait for. All others are persisted: do not change.
"""

from __future__ import annotations

from enum import Enum


class MergeEngine(Enum):
    """How rows of the same key become one."""

    DEDUPLICATE = "deduplicate"
    PARTIAL_UPDATE = "partial-update"
    AGGREGATION = "aggregation"
    FIRST_ROW = "first-row"


class ChangelogProducer(Enum):
    """Where the changelog of a table comes from."""

    NONE = "none"
    INPUT = "input"
    FULL_COMPACTION = "full-compaction"
    LOOKUP = "lookup"


class SortOrder(Enum):
    """Which sequence value wins: the largest (ascending) or the smallest (descending)."""

    ASCENDING = "ascending"
    DESCENDING = "descending"


class BucketFunction(Enum):
    """How the bucket key becomes a bucket number."""

    DEFAULT = "default"
    MOD = "mod"
    HIVE = "hive"


class ScanMode(Enum):
    """Where a scan starts; only the latest state is supported as a stored option."""

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


class LookupCompact(Enum):
    """When a compaction that looks rows up must take level 0: always, or only once it has grown."""

    RADICAL = "radical"
    GENTLE = "gentle"


class LookupCache(Enum):
    """What answers lookups."""

    AUTO = "auto"
    FULL = "full"
    PARTIAL = "partial"
    MEMORY = "memory"


class StoreKind(Enum):
    """The kind of the files that a partial lookup cache makes of data files."""

    ARROW = "arrow"
    SORT = "sort"
    HASH = "hash"


class TagCreation(Enum):
    """Whether commits create tags automatically, and what decides that a period has ended."""

    NONE = "none"
    PROCESS_TIME = "process-time"
    WATERMARK = "watermark"
    BATCH = "batch"


class TagPeriod(Enum):
    """The periods that automatic tags are of."""

    DAILY = "daily"
    HOURLY = "hourly"
    TWO_HOURS = "two-hours"


class TagFormat(Enum):
    """How names of automatic tags express their period."""

    WITH_DASHES = "with_dashes"
    WITHOUT_DASHES = "without_dashes"
    WITHOUT_DASHES_AND_SPACES = "without_dashes_and_spaces"


class ExpireMode(Enum):
    """The thread of the upkeep that follows a commit: the committing thread, or a separate one."""

    SYNC = "sync"
    ASYNC = "async"


class Feature(Enum):
    """What lakelsm has not built: options of it are accepted and kept, and act once it is."""

    APPEND_TABLES = "tables without a primary key"
    COMPACTION_BESIDE_WRITES = "compaction beside writes"
    CROSS_PARTITION = "cross-partition updates"
    EXPLICIT_CASTS = "type changes by explicit casts"
    ORC = "ORC files"
    OTHER_CATALOGS = "catalogs other than the file system's"
    POSTPONED_BUCKETS = "postponed buckets"
    STREAMING = "streaming reads and writes"
