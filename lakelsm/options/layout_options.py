"""Options of where rows and metadata go: buckets, partitions, files, statistics, manifests."""

# ruff: noqa: RUF009 (option() is a dataclass field specifier)
from __future__ import annotations

from dataclasses import dataclass

from lakelsm.options.option import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    NAMES,
    SIZE,
    STATS_MODE,
    TEXT,
    choice_kind,
    codec_kind,
    enum_kind,
    option,
)
from lakelsm.options.option_enums import BucketFunction

_MB = 1024 * 1024
FILE_FORMATS = ("parquet", "orc", "avro", "csv", "text", "json", "row", "lance", "mosaic", "blob", "vortex")
#: Compressions of data files that lakelsm writes.
FILE_CODECS = ("zstd", "snappy", "gzip", "lz4", "none", "uncompressed")
#: Compressions of manifests that lakelsm writes.
MANIFEST_CODECS = ("zstd", "zstandard", "snappy", "deflate", "bzip2", "xz", "null", "none")


@dataclass(frozen=True, kw_only=True)
class LayoutOptions:
    """Layout part of TableOptions. Sizes are bytes."""

    bucket: int = option(
        "bucket",
        INT,
        -1,
        "Buckets of a partition; -1 assigns keys to buckets dynamically.",
        low=-2,
        per_call=False,
    )
    lakelsm_key_per_partition: bool = option(
        "lakelsm.key-per-partition",
        BOOLEAN,
        False,
        "Permit a fixed number of buckets with a primary key that lacks a partition column. A key then has one row in "
        "each partition: a write to one partition leaves the key's row in another as it is; of lakelsm alone.",
        immutable=True,
    )
    bucket_key: tuple[str, ...] = option(
        "bucket-key",
        NAMES,
        (),
        "Columns that choose the bucket; a subset of the primary key without partition columns.",
        default_text="the primary key without partition columns",
        immutable=True,
    )
    bucket_function_type: BucketFunction = option(
        "bucket-function.type",
        enum_kind(BucketFunction),
        BucketFunction.DEFAULT,
        "How the bucket key becomes a bucket number.",
        immutable=True,
    )
    dynamic_bucket_target_row_num: int = option(
        "dynamic-bucket.target-row-num",
        LONG,
        2_000_000,
        "Rows of a dynamic bucket before the next one opens.",
        low=1,
    )
    dynamic_bucket_initial_buckets: int | None = option(
        "dynamic-bucket.initial-buckets",
        INT,
        None,
        "Buckets that each assigner starts with.",
        low=1,
        immutable=True,
    )
    dynamic_bucket_max_buckets: int = option(
        "dynamic-bucket.max-buckets", INT, -1, "Most dynamic buckets of a partition; -1 is unlimited.", low=-1
    )
    dynamic_bucket_assigner_parallelism: int | None = option(
        "dynamic-bucket.assigner-parallelism", INT, None, "Assigners that share the dynamic buckets.", low=1
    )
    partition_default_name: str = option(
        "partition.default-name",
        TEXT,
        "__DEFAULT_PARTITION__",
        "Directory name of a null or blank partition value.",
        immutable=True,
    )
    partition_legacy_name: bool = option(
        "partition.legacy-name",
        BOOLEAN,
        True,
        "Write dates in partition directories as days since 1970.",
        immutable=True,
    )
    dynamic_partition_overwrite: bool = option(
        "dynamic-partition-overwrite",
        BOOLEAN,
        True,
        "An overwrite without a partition replaces only partitions it has.",
        per_call=False,
        for_writes=True,
    )
    overwrite_upgrade: bool = option(
        "overwrite-upgrade",
        BOOLEAN,
        True,
        "The files of an overwrite go to the top level where none of a bucket overlap.",
        per_call=False,
        for_writes=True,
    )
    file_format: str = option(
        "file.format", choice_kind(*FILE_FORMATS), "parquet", "Format of data files.", per_call=False, for_writes=True
    )
    file_compression: str = option(
        "file.compression",
        codec_kind(*FILE_CODECS),
        "zstd",
        "Compression of data files.",
    )
    file_compression_zstd_level: int = option(
        "file.compression.zstd-level", INT, 1, "Level of zstd compression.", low=1, high=22
    )
    data_file_prefix: str = option("data-file.prefix", TEXT, "data-", "Start of the names of data files.")
    changelog_file_prefix: str = option(
        "changelog-file.prefix", TEXT, "changelog-", "Start of the names of changelog files."
    )
    changelog_file_compression: str | None = option(
        "changelog-file.compression",
        codec_kind(*FILE_CODECS),
        None,
        "Compression of changelog files; that of data files if unset.",
    )
    changelog_file_stats_mode: str | None = option(
        "changelog-file.stats-mode",
        STATS_MODE,
        None,
        "Column statistics that changelog files get; those of data files if unset.",
    )
    data_file_thin_mode: bool = option(
        "data-file.thin-mode", BOOLEAN, False, "Leave the copies of the key columns out of data files."
    )
    target_file_size: int = option(
        "target-file-size", SIZE, 128 * _MB, "Size at which a new file begins.", low=1
    )
    target_file_row_num: int = option(
        "target-file-row-num",
        LONG,
        2**63 - 1,
        "Rows at which a new file of a write begins; a compaction and a changelog go by size alone.",
        low=1,
        default_text="unlimited",
    )
    file_block_size: int | None = option(
        "file.block-size",
        SIZE,
        None,
        "Size of a row group, in memory before it is encoded; a compaction makes smaller ones where an eighth of its "
        "task memory is less.",
        low=1,
        default_text="64 mb",
    )
    parquet_enable_dictionary: bool = option(
        "parquet.enable.dictionary", BOOLEAN, True, "Columns of many equal values are written with a dictionary."
    )
    metadata_stats_mode: str = option(
        "metadata.stats-mode", STATS_MODE, "truncate(16)", "Column statistics that data files get."
    )
    metadata_stats_dense_store: bool = option(
        "metadata.stats-dense-store",
        BOOLEAN,
        True,
        "Leave columns without statistics out of the statistics rows.",
    )
    metadata_stats_keep_first_n_columns: int = option(
        "metadata.stats-keep-first-n-columns",
        INT,
        -1,
        "Statistics for the first columns only; -1 is all.",
        low=-1,
    )
    manifest_target_file_size: int = option(
        "manifest.target-file-size", SIZE, 8 * _MB, "Size that merged manifests aim at.", low=1
    )
    manifest_merge_min_count: int = option(
        "manifest.merge-min-count", INT, 30, "Small manifests that are merged in a commit.", low=1
    )
    manifest_full_compaction_threshold_size: int = option(
        "manifest.full-compaction-threshold-size",
        SIZE,
        16 * _MB,
        "Size of changed manifests that merges all.",
    )
    manifest_compression: str = option(
        "manifest.compression",
        codec_kind(*MANIFEST_CODECS),
        "zstd",
        "Avro codec of manifests.",
    )
    file_index_in_manifest_threshold: int = option(
        "file-index.in-manifest-threshold",
        SIZE,
        500,
        "Size up to which a data file's indexes are kept in its manifest entry; larger ones lie beside the file.",
        default_text="500 b",
    )
    file_index_read_enabled: bool = option(
        "file-index.read.enabled",
        BOOLEAN,
        True,
        "Reads and look-ups leave files out whose index says that no row matches (10,000 index files a read at most).",
        per_call=False,
    )
    write_buffer_size: int = option(
        "write-buffer-size",
        SIZE,
        256 * _MB,
        "Rows that a write in this process holds in memory (1 gb at most); what is more waits in scratch files, sorted. "
        "Spark's own settings say it for its writes.",
    )
    write_buffer_spill_max_disk_size: int = option(
        "write-buffer-spill.max-disk-size",
        SIZE,
        2**63 - 1,
        "Space that the scratch files of one write in this process may take; TMPDIR names their directory.",
        default_text="unlimited",
    )
    source_split_target_size: int = option(
        "source.split.target-size", SIZE, 128 * _MB, "Data that a read task gets.", low=1, for_writes=False
    )
    source_split_open_file_cost: int = option(
        "source.split.open-file-cost",
        SIZE,
        4 * _MB,
        "Least size that a file counts for in a read task.",
        for_writes=False,
    )
    compaction_small_file_ratio: float = option(
        "compaction.small-file-ratio",
        DOUBLE,
        0.7,
        "Part of target-file-size below which a file counts as small.",
        low=0,
    )
