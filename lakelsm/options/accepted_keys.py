"""Keys of Paimon that lakelsm accepts but does not use (TableOptions has no attribute), with their kinds of values.

A text that no engine can read is refused when it is set, as for declared options.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lakelsm.options.option import BOOLEAN, DOUBLE, DURATION, INT, SIZE, TEXT, Kind, Option, choice_kind
from lakelsm.options.option_enums import Feature

# Accepted and stored for other engines: lakelsm will use these keys when it has the feature.
WAITING_KEYS: Mapping[Feature, Mapping[str, Kind]] = MappingProxyType(
    {
        Feature.APPEND_TABLES: {
            "bucket-append-ordered": BOOLEAN,
            "compaction.delete-ratio-threshold": DOUBLE,
            "compaction.file-num-limit": INT,
            "compaction.min.file-num": INT,
            "deletion-vector.index-file.target-size": SIZE,
            "local-sort.max-num-file-handles": INT,
            "sort-compaction.local-sample.magnification": INT,
            "sort-compaction.range-strategy": choice_kind("size", "quantity"),
            "streaming-read-append-overwrite": BOOLEAN,
            "write-buffer-for-append": BOOLEAN,
            "zorder.var-length-contribution": INT,
        },
        Feature.CROSS_PARTITION: {
            "cross-partition-upsert.bootstrap-parallelism": INT,
            "cross-partition-upsert.index-ttl": DURATION,
        },
        Feature.ORC: {
            "orc.write.batch-size": INT,
        },
        Feature.OTHER_CATALOGS: {
            "auto-create": BOOLEAN,
            "metastore.partitioned-table": BOOLEAN,
            "partition.idle-time-to-report-statistic": DURATION,
        },
        Feature.POSTPONED_BUCKETS: {
            "postpone.batch-write-fixed-bucket": BOOLEAN,
            "postpone.batch-write-fixed-bucket.max-parallelism": INT,
            "postpone.default-bucket-num": INT,
        },
        Feature.STREAMING: {
            "scan.max-splits-per-task": INT,
            "snapshot.watermark-idle-timeout": DURATION,
        },
    }
)

# Accepted without effect: rows, files and snapshots do not depend on these keys. They set buffers, threads and the
# order of work in other engines, or are notes.
TUNING_KEYS: Mapping[str, Kind] = MappingProxyType(
    {
        "async-file-write": BOOLEAN,
        "file-operation.thread-num": INT,
        "file-reader-async-threshold": SIZE,
        "local-merge-buffer-size": SIZE,
        "lookup.cache.high-priority-pool-ratio": DOUBLE,
        "lookup.merge-buffer-size": SIZE,
        "lookup.merge-records-threshold": INT,
        "manifest-sort.max-rewrite-size": SIZE,
        "manifest-sort.partition-field": TEXT,
        "manifest.merge-optimize.enabled": BOOLEAN,
        "owner": TEXT,
        "page-size": SIZE,
        "read.batch-size": INT,
        "scan.infer-parallelism": BOOLEAN,
        "scan.manifest.parallelism": INT,
        "scan.parallelism": INT,
        "scan.plan-sort-partition": BOOLEAN,
        "sink.managed.writer-buffer-memory": SIZE,
        "sink.parallelism": INT,
        "sink.use-managed-memory-allocator": BOOLEAN,
        "sort-engine": choice_kind("min-heap", "loser-tree"),
        "sort-spill-buffer-size": SIZE,
        "sort-spill-threshold": INT,
        "spill-compression": TEXT,
        "spill-compression.zstd-level": INT,
        "write-buffer-spillable": BOOLEAN,
        "write-max-writers-to-spill": INT,
        "write.batch-memory": SIZE,
        "write.batch-size": INT,
    }
)

# Accepted, because lakelsm always does what these keys enable: a write compacts before it returns, a delete writes
# -D rows, and each snapshot records the greatest sequence number.
ALWAYS_ON_KEYS: Mapping[str, Kind] = MappingProxyType(
    {
        "commit.force-compact": BOOLEAN,
        "delete.force-produce-changelog": BOOLEAN,
        "write.sequence-number-init-mode": choice_kind("scan", "snapshot"),
    }
)

ACCEPTED_KEYS: Mapping[str, Kind] = MappingProxyType(
    {**TUNING_KEYS, **ALWAYS_ON_KEYS, **{key: kind for keys in WAITING_KEYS.values() for key, kind in keys.items()}}
)


def check_accepted_value(key: str, text: str) -> None:
    """Raise InvalidInputError for an invalid text of an accepted key; other keys are not checked."""
    kind = ACCEPTED_KEYS.get(key)
    if kind is not None:
        Option(key, kind, None, "").parse(text)
