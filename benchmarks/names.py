"""The names of contenders, shared by lanes, targets and tables. Standard library only."""

from __future__ import annotations

#: lakelsm on Spark.
ENGINE = "lakelsm"

#: lakelsm in this process, Arrow in and out.
LOCAL = "lakelsm local"

#: An earlier revision of lakelsm on Spark, on the same tables.
BEFORE = "lakelsm before"

# Contenders of queries and of the data source.
SQL_LOCAL = "lakelsm local SQL"
SQL_SPARK = "lakelsm SQL"
READER_BY_HAND = "to_reader in DuckDB"
READ_BY_HAND = "Table.read in Spark SQL"
FORMAT = "lakelsm format"

# Contenders of streams.
NATIVE_STREAM = "lakelsm write_stream"
FORMAT_STREAM = "lakelsm format stream"

# Contenders of lookups.
FULL_CACHE = "lakelsm full cache"
PARTIAL_CACHE = "lakelsm partial cache"
QUERY_SERVICE = "lakelsm query service"

# Floors.
SORTED_WRITE = "Spark sorted write"
KEY_SORTED_WRITE = "Spark write sorted on the key alone"
APPEND = "Spark parquet append"
SCAN = "Spark parquet scan"
COPY = "Spark parquet copy"
SHUFFLE_JOIN = "Spark shuffle join"
BROADCAST_JOIN = "Spark broadcast join"
ARROW_SCAN = "pyarrow scan"
DIRECTORY_WALK = "bare os.scandir"
BARE_AVRO = "bare fastavro"
BARE_REQUESTS = "bare requests"

# Peers.
JAVA = "Paimon (Java)"
JAVA_ON_SPARK = "Paimon (Java) on Spark"
PYPAIMON = "pypaimon"
DELTA = "delta-rs"
CLICKHOUSE = "chdb (ClickHouse)"
DUCKDB = "DuckDB"
ROCKSDB = "RocksDB (Python)"

DEDUPLICATE, PARTIAL_UPDATE, AGGREGATION = "deduplicate", "partial-update", "aggregation"


def first(name: str) -> str:
    """Return the name of the first query of a snapshot; the bare name is a later query."""
    return f"{name}, first query"


def cold(name: str) -> str:
    """Return the name of the same in a process that has nothing of the table in memory."""
    return f"{name}, new process"


def reloaded(name: str) -> str:
    """Return the name of a cache that is loaded again, instead of refreshed."""
    return f"{name}, loaded again"


def smaller(name: str) -> str:
    """Return the name of the same on a table ten times smaller."""
    return f"{name} (table / 10)"


def upserting(name: str) -> str:
    """Return the name of the plain upsert beside a merge of the same rows."""
    return f"{name} upsert"


def pushed(name: str) -> str:
    """Return the name of the same with the columns or the condition as options."""
    return f"{name}, by option"


def merging(name: str, merge_engine: str) -> str:
    """Return the name of the same on the table of a merge engine."""
    return f"{name} {merge_engine}"
