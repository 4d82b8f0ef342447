"""Options of the layout of rows and metadata: buckets, partitions, files, statistics, manifests."""

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
    """The part of TableOptions for the layout of rows and metadata. Sizes in bytes."""

    bucket: int = option(
        "bucket",
        INT,
        -1,
        "Number of buckets of each partition; -1 assigns keys to buckets dynamically (dynamic-bucket.*).",
        low=-2,
        per_call=False,
    )
    lakelsm_key_per_partition: bool = option(
        "lakelsm.key-per-partition",
        BOOLEAN,
        False,
        "Allow a fixed number of buckets with a primary key that lacks a partition column. A key then has one row in "
        "each partition: a write to one partition does not change the row in another (docs/keys.md).",
        immutable=True,
    )
    bucket_key: tuple[str, ...] = option(
        "bucket-key",
        NAMES,
        (),
        "Columns whose hash selects the bucket: a subset of the primary key without partition columns.",
        default_text="the primary key without partition columns",
        immutable=True,
    )
    bucket_function_type: BucketFunction = option(
        "bucket-function.type",
        enum_kind(BucketFunction),
        BucketFunction.DEFAULT,
        "Function from the bucket key to a bucket number.",
        immutable=True,
    )
    dynamic_bucket_target_row_num: int = option(
        "dynamic-bucket.target-row-num",
        LONG,
        2_000_000,
        "Rows of a dynamic bucket before the next one is opened.",
        low=1,
    )
    dynamic_bucket_initial_buckets: int | None = option(
        "dynamic-bucket.initial-buckets",
        INT,
        None,
        "Number of dynamic buckets that each assigner starts with.",
        low=1,
        immutable=True,
    )
    dynamic_bucket_max_buckets: int = option(
        "dynamic-bucket.max-buckets",
        INT,
        -1,
        "Maximum number of dynamic buckets of a partition; -1 is unlimited.",
        low=-1,
    )
    dynamic_bucket_assigner_parallelism: int | None = option(
        "dynamic-bucket.assigner-parallelism",
        INT,
        None,
        "Number of assigners that share the dynamic buckets.",
        low=1,
    )
    partition_default_name: str = option(
        "partition.default-name",
        TEXT,
        "__DEFAULT_PARTITION__",
        "Directory name of a NULL or blank partition value.",
        immutable=True,
    )
    partition_legacy_name: bool = option(
        "partition.legacy-name",
        BOOLEAN,
        True,
        "Names of partition directories show dates as days since 1970.",
        immutable=True,
    )
    dynamic_partition_overwrite: bool = option(
        "dynamic-partition-overwrite",
        BOOLEAN,
        True,
        "An overwrite without `partition` replaces only the partitions of its rows; with false, all.",
        per_call=False,
        for_writes=True,
    )
    overwrite_upgrade: bool = option(
        "overwrite-upgrade",
        BOOLEAN,
        True,
        "Files of an overwrite are placed on the top level if those of a bucket do not overlap.",
        per_call=False,
        for_writes=True,
    )
    file_format: str = option(
        "file.format",
        choice_kind(*FILE_FORMATS),
        "parquet",
        "Format of data files; lakelsm writes Parquet only.",
        per_call=False,
        for_writes=True,
    )
    file_compression: str = option(
        "file.compression", codec_kind(*FILE_CODECS), "zstd", "Compression of data files."
    )
    file_compression_zstd_level: int = option(
        "file.compression.zstd-level",
        INT,
        1,
        "Level of zstd compression. A higher level makes smaller files and slower writes.",
        low=1,
        high=22,
    )
    data_file_prefix: str = option("data-file.prefix", TEXT, "data-", "Prefix of the names of data files.")
    changelog_file_prefix: str = option(
        "changelog-file.prefix", TEXT, "changelog-", "Prefix of the names of changelog files."
    )
    changelog_file_compression: str | None = option(
        "changelog-file.compression",
        codec_kind(*FILE_CODECS),
        None,
        "Compression of changelog files.",
        default_text="file.compression",
    )
    changelog_file_stats_mode: str | None = option(
        "changelog-file.stats-mode",
        STATS_MODE,
        None,
        "Column statistics of changelog files.",
        default_text="metadata.stats-mode",
    )
    data_file_thin_mode: bool = option(
        "data-file.thin-mode", BOOLEAN, False, "Leave the copies of the key columns out of data files."
    )
    target_file_size: int = option(
        "target-file-size", SIZE, 128 * _MB, "Size at which a writer begins a new file.", low=1
    )
    target_file_row_num: int = option(
        "target-file-row-num",
        LONG,
        2**63 - 1,
        "Number of rows at which a write begins a new file. Compactions and changelogs use target-file-size only.",
        low=1,
        default_text="unlimited",
    )
    file_block_size: int | None = option(
        "file.block-size",
        SIZE,
        None,
        "Size of a row group in memory, before encoding. A compaction writes smaller ones if an eighth of its task "
        "memory is less.",
        low=1,
        default_text="64 mb",
    )
    parquet_enable_dictionary: bool = option(
        "parquet.enable.dictionary", BOOLEAN, True, "Write columns with many equal values with a dictionary."
    )
    metadata_stats_mode: str = option(
        "metadata.stats-mode",
        STATS_MODE,
        "truncate(16)",
        "Column statistics of data files, by which reads skip files: none, counts, full, or truncate(n) with the "
        "first n characters of texts.",
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
        "Keep statistics of the first n columns only; -1 is all.",
        low=-1,
    )
    manifest_target_file_size: int = option(
        "manifest.target-file-size", SIZE, 8 * _MB, "Target size of merged manifests.", low=1
    )
    manifest_merge_min_count: int = option(
        "manifest.merge-min-count", INT, 30, "Number of small manifests at which a commit merges them.", low=1
    )
    manifest_full_compaction_threshold_size: int = option(
        "manifest.full-compaction-threshold-size",
        SIZE,
        16 * _MB,
        "Size of the changed manifests at which a commit merges all manifests.",
    )
    manifest_compression: str = option(
        "manifest.compression", codec_kind(*MANIFEST_CODECS), "zstd", "Avro codec of manifests."
    )
    file_index_in_manifest_threshold: int = option(
        "file-index.in-manifest-threshold",
        SIZE,
        500,
        "Maximum size of a data file's indexes that its manifest entry contains; larger ones are a separate file.",
        default_text="500 b",
    )
    file_index_read_enabled: bool = option(
        "file-index.read.enabled",
        BOOLEAN,
        True,
        "Reads and lookups skip files whose index excludes all rows, with at most 10,000 index files per read. Set "
        "it to false to read a table with damaged indexes.",
        per_call=False,
    )
    write_buffer_size: int = option(
        "write-buffer-size",
        SIZE,
        256 * _MB,
        "Memory for the rows of a write in this process, at most 1 gb. Further rows are sorted into scratch files. "
        "Writes on Spark use Spark's settings instead.",
    )
    write_buffer_spill_max_disk_size: int = option(
        "write-buffer-spill.max-disk-size",
        SIZE,
        2**63 - 1,
        "Maximum size of the scratch files of one write in this process; TMPDIR names their directory.",
        default_text="unlimited",
    )
    source_split_target_size: int = option(
        "source.split.target-size",
        SIZE,
        128 * _MB,
        "Target size of the data of one read task.",
        low=1,
        for_writes=False,
    )
    source_split_open_file_cost: int = option(
        "source.split.open-file-cost",
        SIZE,
        4 * _MB,
        "Minimum size that a file counts for in a read task. A larger value puts fewer small files into one task.",
        for_writes=False,
    )
    compaction_small_file_ratio: float = option(
        "compaction.small-file-ratio",
        DOUBLE,
        0.7,
        "Fraction of target-file-size below which a file counts as small.",
        low=0,
    )
