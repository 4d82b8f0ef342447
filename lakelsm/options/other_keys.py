"""Keys of Paimon's options that TableOptions has no attribute for: harmless ones, and unbuilt ones.

A key that is nowhere in `lakelsm.options` is unknown: refused when a table is created, tolerated when one is
opened.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options.field_options import DEFAULT_AGGREGATE_KEY, FIELD_OPTIONS, split_field_key
from lakelsm.options.table_options import OPTIONS

# Accepted, and without effect in lakelsm: they tune other engines, or parts that do not change rows.
HARMLESS_KEYS: tuple[str, ...] = (
    "async-file-write",
    "auto-create",
    "batch-scan-mode",
    "bucket-append-ordered",
    "cache-page-size",
    "commit.force-compact",
    "commit.force-create-snapshot",
    "compaction.delete-ratio-threshold",
    "compaction.file-num-limit",
    "compaction.min.file-num",
    "consumer-id",
    "consumer.changelog-only",
    "consumer.expiration-time",
    "consumer.ignore-progress",
    "consumer.mode",
    "continuous.discovery-interval",
    "cross-partition-upsert.bootstrap-parallelism",
    "cross-partition-upsert.index-ttl",
    "delete.force-produce-changelog",
    "deletion-vector.index-file.target-size",
    "deletion-vectors.bitmap64",
    "file-index.in-manifest-threshold",
    "file-index.read.enabled",
    "file-operation.thread-num",
    "file-reader-async-threshold",
    "local-merge-buffer-size",
    "local-sort.max-num-file-handles",
    "lookup-compact",
    "lookup-compact.max-interval",
    "lookup.cache-file-retention",
    "lookup.cache-max-disk-size",
    "lookup.cache-max-memory-size",
    "lookup.cache-rows",
    "lookup.cache-spill-compression",
    "lookup.cache.bloom.filter.enabled",
    "lookup.cache.bloom.filter.fpp",
    "lookup.cache.high-priority-pool-ratio",
    "lookup.continuous.discovery-interval",
    "lookup.hash-load-factor",
    "lookup.merge-buffer-size",
    "lookup.merge-records-threshold",
    "manifest-sort.enabled",
    "manifest-sort.max-rewrite-size",
    "manifest-sort.partition-field",
    "manifest.delete-file-drop-stats",
    "manifest.merge-optimize.enabled",
    "metastore.partitioned-table",
    "orc.write.batch-size",
    "owner",
    "page-size",
    "partition.end-input-to-done",
    "partition.idle-time-to-report-statistic",
    "postpone.batch-write-fixed-bucket",
    "postpone.batch-write-fixed-bucket.max-parallelism",
    "postpone.default-bucket-num",
    "read.batch-size",
    "scan.bounded.watermark",
    "scan.ignore-corrupt-files",
    "scan.ignore-lost-files",
    "scan.infer-parallelism",
    "scan.manifest.parallelism",
    "scan.max-splits-per-task",
    "scan.parallelism",
    "scan.plan-sort-partition",
    "sink.managed.writer-buffer-memory",
    "sink.parallelism",
    "sink.process-time-zone",
    "sink.use-managed-memory-allocator",
    "sink.watermark-time-zone",
    "snapshot.clean-empty-directories",
    "snapshot.expire.clean-empty-directories",
    "snapshot.expire.execution-mode",
    "snapshot.expire.limit",
    "snapshot.ignore-empty-commit",
    "snapshot.watermark-idle-timeout",
    "sort-compaction.local-sample.magnification",
    "sort-compaction.range-strategy",
    "sort-engine",
    "sort-spill-buffer-size",
    "sort-spill-threshold",
    "spill-compression",
    "spill-compression.zstd-level",
    "stream-scan-mode",
    "streaming-read-append-overwrite",
    "streaming.read.snapshot.delay",
    "write-buffer-for-append",
    "write-buffer-size",
    "write-buffer-spill.max-disk-size",
    "write-buffer-spillable",
    "write-max-writers-to-spill",
    "write.batch-memory",
    "write.batch-size",
    "write.sequence-number-init-mode",
    "zorder.var-length-contribution",
)

# Paimon's keys whose effect lakelsm has not built: refused when a table is created. An issue that builds one
# deletes its line. (Features that also forbid opening a table are in lakelsm/schema/unbuilt_features.py.)
UNBUILT_KEYS: tuple[str, ...] = (
    "clustering.columns",
    "commit.callbacks",
    "commit.discard-duplicate-files",
    "commit.strict-mode.last-safe-snapshot",
    "compaction.skip-expired-partitions",
    "data-file.external-paths.specific-fs",
    "data-file.external-paths.strategy",
    "data-file.external-paths.weights",
    "end-input.check-partition-expire",
    "file.suffix.include.compression",
    "incremental-between-scan-mode",
    "incremental-between-tag-to-snapshot",
    "key-value.sequence_number.enabled",
    "metastore.tag-to-partition",
    "metastore.tag-to-partition.preview",
    "partition.mark-done-action",
    "partition.sink-strategy",
    "path",
    "postpone.batch-write-fixed-bucket.rescale-load-factor",
    "postpone.merge-on-read",
    "postpone.target-row-num-per-bucket",
    "postpone.target-size-per-bucket",
    "scan.plan-auto-tag-for-read.time-retained",
    "sink.clustering.by-columns",
    "sink.clustering.strategy",
    "table-read.sequence-number.enabled",
)
UNBUILT_PREFIXES: tuple[str, ...] = (
    "blob",
    "chain-table.",
    "clustering.",
    "commit.callback.",
    "data-evolution.",
    "file-index.",
    "format-table.",
    "full-text-index.",
    "global-index.",
    "local-kv-db.",
    "lookup.blob",
    "lookup.remote-file.",
    "materialized-table.",
    "parquet.",
    "partition.expiration-",
    "partition.mark-done-action.",
    "partition.timestamp-",
    "pk-",
    "row-tracking.",
    "scalar-index.",
    "scan.fallback-",
    "tag.",
    "variant.",
    "parquet.variant.",
    "vector",
    "visibility-callback.",
)


def check_new_keys(options: Mapping[str, str], known_elsewhere: frozenset[str]) -> None:
    """Judges the keys of a new table (or of a write's options).

    `known_elsewhere` holds keys that `schema.unbuilt_features` refuses with words of its own. Raises InvalidInputError
    naming the nearest known key for an unknown one.
    """
    known = _known_keys() | known_elsewhere
    for key in options:
        split = split_field_key(key)
        if split is not None:
            _check_field_key(key, split[1])
        elif key not in known and not _is_unbuilt(key):
            near = difflib.get_close_matches(key, sorted(known), n=1)
            hint = f"did you mean '{near[0]}'?" if near else "see docs/options.md"
            raise InvalidInputError(f"unknown option '{key}' = '{options[key]}': {hint}")


def check_unbuilt_keys(options: Mapping[str, str], known_elsewhere: frozenset[str]) -> None:
    """Refuses keys of Paimon that are not built, by name."""
    known = _known_keys() | known_elsewhere
    for key, text in options.items():
        if key not in known and split_field_key(key) is None and _is_unbuilt(key):
            raise UnsupportedFeatureError(
                f"option '{key}' = '{text}' is not supported yet; remove it to create the table"
            )


def _known_keys() -> frozenset[str]:
    fallbacks = {key for declaration in OPTIONS.values() for key in declaration.fallback_keys}
    return frozenset({*OPTIONS, *fallbacks, *HARMLESS_KEYS, DEFAULT_AGGREGATE_KEY})


def _is_unbuilt(key: str) -> bool:
    return key in UNBUILT_KEYS or key.startswith(UNBUILT_PREFIXES)


def _check_field_key(key: str, name: str) -> None:
    # A nested path such as fields.row.member.aggregate-function is judged by the rules of `schema`.
    if name in FIELD_OPTIONS or any(name.endswith("." + known) for known in FIELD_OPTIONS):
        return
    near = difflib.get_close_matches(name, FIELD_OPTIONS, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(FIELD_OPTIONS)}"
    raise InvalidInputError(f"unknown column option '{name}' in '{key}': {hint}")
