"""Options of lookups: which cache answers them, how it is kept fresh, and the files that it is made of."""

# ruff: noqa: RUF009 (option() is a dataclass field specifier)
from __future__ import annotations

from dataclasses import dataclass

from lakelsm.options.option import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    PERIODS,
    SIZE,
    TEXT,
    choice_kind,
    enum_kind,
    option,
)
from lakelsm.options.option_enums import LookupCache, StoreKind

_UNLIMITED = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class LookupOptions:
    """Lookup part of TableOptions. Sizes are bytes, durations milliseconds."""

    lookup_cache: LookupCache = option(
        "lookup.cache",
        enum_kind(LookupCache),
        LookupCache.AUTO,
        "What answers lookups: the whole table kept at hand ('full' on disk; 'memory' in memory, of each process its "
        "own), files of it indexed when first touched ('partial', by the full primary key only), or 'auto': a query "
        "service of the table where there is one and else 'partial' by the full primary key, 'full' by other keys.",
        per_call=False,
    )
    lookup_cache_rows: int = option(
        "lookup.cache-rows",
        LONG,
        10_000,
        "Rows, of single lookups, that are kept as they were handed out.",
        low=0,
        per_call=False,
    )
    lookup_local_file_type: StoreKind = option(
        "lookup.local-file-type",
        enum_kind(StoreKind),
        StoreKind.ARROW,
        "The kind of the files that 'partial' caches make of data files: Arrow columns with an index of hashes, or "
        "Paimon's 'sort' or 'hash' stores.",
        per_call=False,
    )
    lookup_hash_load_factor: float = option(
        "lookup.hash-load-factor",
        DOUBLE,
        0.75,
        "How full the slots of 'hash' stores are.",
        low=0.01,
        high=0.99,
        per_call=False,
    )
    cache_page_size: int = option(
        "cache-page-size",
        SIZE,
        64 * 1024,
        "Size of the blocks of 'sort' stores, and of the pages of values of 'hash' stores.",
        low=64,
        high=1 << 30,
        per_call=False,
    )
    lookup_cache_spill_compression: str = option(
        "lookup.cache-spill-compression",
        choice_kind("none", "zstd", "lz4"),
        "zstd",
        "Compression of the blocks of 'sort' stores, and of the values of 'hash' stores.",
        per_call=False,
    )
    lookup_cache_bloom_filter_enabled: bool = option(
        "lookup.cache.bloom.filter.enabled",
        BOOLEAN,
        True,
        "Whether 'sort' and 'hash' stores have a bloom filter.",
        per_call=False,
    )
    lookup_cache_bloom_filter_fpp: float = option(
        "lookup.cache.bloom.filter.fpp",
        DOUBLE,
        0.05,
        "How often a bloom filter lets a key through that its store lacks.",
        low=0.000001,
        high=0.9,
        per_call=False,
    )
    lookup_cache_max_memory_size: int = option(
        "lookup.cache-max-memory-size",
        SIZE,
        256 << 20,
        "Memory that the caches of one process take for a table beside what the system maps of their files; what a "
        "'memory' cache has at most.",
        low=1 << 20,
        per_call=False,
    )
    lookup_cache_max_disk_size: int = option(
        "lookup.cache-max-disk-size",
        SIZE,
        _UNLIMITED,
        "Disk space that the lookup files of a cache take; the one not used for longest goes first.",
        default_text="unlimited",
        low=1 << 20,
        per_call=False,
    )
    lookup_cache_file_retention: int = option(
        "lookup.cache-file-retention",
        DURATION,
        3_600_000,
        "How long a lookup file is kept that is not used.",
        per_call=False,
    )
    lookup_continuous_discovery_interval: int | None = option(
        "lookup.continuous.discovery-interval",
        DURATION,
        None,
        "How often lookups look for a newer snapshot.",
        default_text="continuous.discovery-interval",
        per_call=False,
    )
    continuous_discovery_interval: int = option(
        "continuous.discovery-interval",
        DURATION,
        10_000,
        "How often lookups look for a newer snapshot, where they have no interval of their own.",
        per_call=False,
    )
    lookup_refresh_async: bool = option(
        "lookup.refresh.async",
        BOOLEAN,
        False,
        "Whether lookups answer from the snapshot before while their cache is refreshed in the background.",
        per_call=False,
    )
    lookup_refresh_async_pending_snapshot_count: int = option(
        "lookup.refresh.async.pending-snapshot-count",
        INT,
        5,
        "Snapshots that a cache may be behind while it is refreshed in the background; beyond, lookups wait.",
        low=0,
        per_call=False,
    )
    lookup_refresh_full_load_threshold: int = option(
        "lookup.refresh.full-load-threshold",
        INT,
        2**31 - 1,
        "Snapshots behind which a 'full' cache is loaded anew instead of following the changes.",
        low=1,
        per_call=False,
    )
    lookup_refresh_time_periods_blacklist: tuple[tuple[int, int], ...] = option(
        "lookup.refresh.time-periods-blacklist",
        PERIODS,
        (),
        "Periods of the local clock without a refresh: 'yyyy-MM-dd HH:mm->yyyy-MM-dd HH:mm', several joined by ','.",
        default_text="none",
        per_call=False,
    )
    lookup_bootstrap_parallelism: int = option(
        "lookup.bootstrap-parallelism",
        INT,
        4,
        "Tasks, at most, that load a 'full' cache.",
        low=1,
        per_call=False,
    )
    scan_partitions: str | None = option(
        "scan.partitions",
        TEXT,
        None,
        "The partitions that lookups see: 'dt=2026-01-01;dt=2026-01-02', or the greatest ones: 'max_pt()', "
        "'max_two_pt()', 'year=max_pt(),month=max_pt()'.",
        fallback_keys=("lookup.dynamic-partition",),
        per_call=False,
    )
    lookup_dynamic_partition_refresh_interval: int = option(
        "lookup.dynamic-partition.refresh-interval",
        DURATION,
        3_600_000,
        "How often the greatest partitions of `scan.partitions` are looked for.",
        per_call=False,
    )
    # Of lakelsm alone: other engines ignore them.
    lakelsm_lookup_service_token_file: str | None = option(
        "lakelsm.lookup-service.token-file",
        TEXT,
        None,
        "The file, on the machine that looks up, with the token that the servers of the table's query service ask for; "
        "of lakelsm alone.",
        per_call=False,
    )
    lakelsm_lookup_service_tls_roots: str | None = option(
        "lakelsm.lookup-service.tls-roots",
        TEXT,
        None,
        "The file, on the machine that looks up, with the certificates (PEM) that vouch for the servers of the table's "
        "query service; with it, and only with it, they are asked by TLS; of lakelsm alone.",
        per_call=False,
    )
    lakelsm_lookup_service_timeout: int = option(
        "lakelsm.lookup-service.timeout",
        DURATION,
        30_000,
        "How long a lookup waits for the answer of a server of the table's query service; of lakelsm alone.",
        low=1,
        per_call=False,
    )


@dataclass(frozen=True, kw_only=True)
class QueryServerOptions:
    """Query service part of TableOptions. Sizes are bytes, durations milliseconds. Other engines ignore all of them."""

    lakelsm_lookup_service_idle_timeout: int = option(
        "lakelsm.lookup-service.idle-timeout",
        DURATION,
        10_000,
        "How long a server of the table's query service waits for a client to send its keys, or to take rows; then it "
        "closes the client's connection; of lakelsm alone.",
        low=100,
        per_call=False,
    )
    lakelsm_lookup_service_max_calls: int = option(
        "lakelsm.lookup-service.max-calls",
        INT,
        500,
        "Calls that a server of the table's query service answers at a time; it refuses others; of lakelsm alone.",
        low=1,
        high=100_000,
        per_call=False,
    )
    lakelsm_lookup_service_max_request_size: int = option(
        "lakelsm.lookup-service.max-request-size",
        SIZE,
        64 << 20,
        "Bytes of keys that a server of the table's query service takes in one request; of lakelsm alone.",
        low=1 << 10,
        per_call=False,
    )
