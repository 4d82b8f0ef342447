"""Options of lookups: the cache that answers, its refresh, its files, and the query service."""

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
    """The part of TableOptions for lookups. Sizes in bytes, durations in milliseconds."""

    lookup_cache: LookupCache = option(
        "lookup.cache",
        enum_kind(LookupCache),
        LookupCache.AUTO,
        "Cache that answers lookups: 'full' (all rows, on the local disk), 'memory' (all rows, in the memory of each "
        "process), 'partial' (files that are indexed when they are first needed; by the full primary key only), or "
        "'auto': a query service of the table if one runs, else 'partial' by the full primary key and 'full' by "
        "other keys.",
        per_call=False,
    )
    lookup_cache_rows: int = option(
        "lookup.cache-rows",
        LONG,
        10_000,
        "Number of result rows of recent single lookups that a cache keeps.",
        low=0,
        per_call=False,
    )
    lookup_local_file_type: StoreKind = option(
        "lookup.local-file-type",
        enum_kind(StoreKind),
        StoreKind.ARROW,
        "Format of the files that 'partial' caches build from data files: Arrow columns with a hash index, or "
        "Paimon's 'sort' or 'hash' stores.",
        per_call=False,
    )
    lookup_hash_load_factor: float = option(
        "lookup.hash-load-factor",
        DOUBLE,
        0.75,
        "Fraction of the slots of a 'hash' store that are used.",
        low=0.01,
        high=0.99,
        per_call=False,
    )
    cache_page_size: int = option(
        "cache-page-size",
        SIZE,
        64 * 1024,
        "Size of the blocks of 'sort' stores and of the value pages of 'hash' stores.",
        low=64,
        high=1 << 30,
        per_call=False,
    )
    lookup_cache_spill_compression: str = option(
        "lookup.cache-spill-compression",
        choice_kind("none", "zstd", "lz4"),
        "zstd",
        "Compression of the blocks of 'sort' stores and of the values of 'hash' stores.",
        per_call=False,
    )
    lookup_cache_bloom_filter_enabled: bool = option(
        "lookup.cache.bloom.filter.enabled",
        BOOLEAN,
        True,
        "'sort' and 'hash' stores have a bloom filter.",
        per_call=False,
    )
    lookup_cache_bloom_filter_fpp: float = option(
        "lookup.cache.bloom.filter.fpp",
        DOUBLE,
        0.05,
        "False-positive rate of the bloom filters of 'sort' and 'hash' stores.",
        low=0.000001,
        high=0.9,
        per_call=False,
    )
    lookup_cache_max_memory_size: int = option(
        "lookup.cache-max-memory-size",
        SIZE,
        256 << 20,
        "Maximum memory of a table's caches in one process, without the pages of their files that the system maps; "
        "also the maximum size of a 'memory' cache.",
        low=1 << 20,
        per_call=False,
    )
    lookup_cache_max_disk_size: int = option(
        "lookup.cache-max-disk-size",
        SIZE,
        _UNLIMITED,
        "Maximum disk space of the lookup files of a cache. The least recently used file is deleted first.",
        default_text="unlimited",
        low=1 << 20,
        per_call=False,
    )
    lookup_cache_file_retention: int = option(
        "lookup.cache-file-retention",
        DURATION,
        3_600_000,
        "Time after which an unused lookup file is deleted.",
        per_call=False,
    )
    lookup_continuous_discovery_interval: int | None = option(
        "lookup.continuous.discovery-interval",
        DURATION,
        None,
        "Interval at which lookups look for a newer snapshot. A longer one saves requests, and answers are older.",
        default_text="continuous.discovery-interval",
        per_call=False,
    )
    continuous_discovery_interval: int = option(
        "continuous.discovery-interval",
        DURATION,
        10_000,
        "Interval at which lookups look for a newer snapshot if lookup.continuous.discovery-interval is not set.",
        per_call=False,
    )
    lookup_refresh_async: bool = option(
        "lookup.refresh.async",
        BOOLEAN,
        False,
        "Caches are refreshed in the background; until then lookups answer from the previous snapshot.",
        per_call=False,
    )
    lookup_refresh_async_pending_snapshot_count: int = option(
        "lookup.refresh.async.pending-snapshot-count",
        INT,
        5,
        "Number of snapshots that a cache may be behind during a refresh in the background; if it is further behind, "
        "lookups wait.",
        low=0,
        per_call=False,
    )
    lookup_refresh_full_load_threshold: int = option(
        "lookup.refresh.full-load-threshold",
        INT,
        2**31 - 1,
        "Number of snapshots behind which a 'full' cache is loaded again instead of following the changes.",
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
        "Maximum number of tasks that load a 'full' cache.",
        low=1,
        per_call=False,
    )
    scan_partitions: str | None = option(
        "scan.partitions",
        TEXT,
        None,
        "Partitions that lookups read: 'dt=2026-01-01;dt=2026-01-02', or the greatest ones: 'max_pt()', "
        "'max_two_pt()', 'year=max_pt(),month=max_pt()'.",
        fallback_keys=("lookup.dynamic-partition",),
        per_call=False,
    )
    lookup_dynamic_partition_refresh_interval: int = option(
        "lookup.dynamic-partition.refresh-interval",
        DURATION,
        3_600_000,
        "Interval at which lookups determine the greatest partitions of `scan.partitions` again.",
        per_call=False,
    )
    # Other engines ignore the options of lakelsm.
    lakelsm_lookup_service_token_file: str | None = option(
        "lakelsm.lookup-service.token-file",
        TEXT,
        None,
        "Path of the file, on the client's machine, with the token that servers of the query service require.",
        per_call=False,
    )
    lakelsm_lookup_service_tls_roots: str | None = option(
        "lakelsm.lookup-service.tls-roots",
        TEXT,
        None,
        "Path of the file, on the client's machine, with the certificates (PEM) that verify servers of the query "
        "service. Clients use TLS only if it is set.",
        per_call=False,
    )
    lakelsm_lookup_service_timeout: int = option(
        "lakelsm.lookup-service.timeout",
        DURATION,
        30_000,
        "Maximum time that a lookup waits for the answer of a server of the query service.",
        low=1,
        per_call=False,
    )


@dataclass(frozen=True, kw_only=True)
class QueryServerOptions:
    """The part of TableOptions for servers of the query service. Sizes in bytes, durations in milliseconds."""

    lakelsm_lookup_service_idle_timeout: int = option(
        "lakelsm.lookup-service.idle-timeout",
        DURATION,
        10_000,
        "Time that a server of the query service waits for a client to send keys or to take rows before it closes "
        "the connection.",
        low=100,
        per_call=False,
    )
    lakelsm_lookup_service_max_calls: int = option(
        "lakelsm.lookup-service.max-calls",
        INT,
        500,
        "Maximum number of calls that a server of the query service answers at a time; it refuses others.",
        low=1,
        high=100_000,
        per_call=False,
    )
    lakelsm_lookup_service_max_request_size: int = option(
        "lakelsm.lookup-service.max-request-size",
        SIZE,
        64 << 20,
        "Maximum size of the keys of one request to a server of the query service.",
        low=1 << 10,
        per_call=False,
    )
