"""The rows that a read leaves out, found by tasks: those that a merge hides, and those that deletion vectors mask.

They depend on nothing but files, which never change, and on how the table merges. So a session keeps them for the next
read of the same files: Spark caches what the tasks yield, when an action needs it first, and drops it with the session.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from threading import Lock

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakelsm.format.snapshot import Snapshot
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.plan.merge_units import packed_for_tasks
from lakelsm.read.kept_snapshot import OfSnapshot
from lakelsm.read.stale_rows import CHUNK_BITS, MaskedRows, StaleRows
from lakelsm.schema.system_columns import STALE_CHUNK, STALE_FILE, STALE_SIZE, STALE_WORDS
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.tasks import read_units

#: Spark's schema of `stale_chunks`.
STALE_SCHEMA = T.StructType(
    [
        T.StructField(STALE_FILE, T.StringType()),
        T.StructField(STALE_SIZE, T.LongType()),
        T.StructField(STALE_CHUNK, T.LongType()),
        T.StructField(STALE_WORDS, T.ArrayType(T.LongType())),
    ]
)

#: Bytes around the words of a file's part: the driver keeps what is planned of it.
_AROUND_WORDS = 1 << 10


@dataclass(frozen=True)
class HiddenRows:
    """What is left out of some files, as rows of `STALE_SCHEMA`. ``found_before``: a read asked for the same."""

    chunks: DataFrame
    found_before: bool


def hidden_rows(
    spark: SparkSession,
    store: TableStore,
    schemas: dict[int, TableSchema],
    units: Sequence[MergeUnit],
    masked: Sequence[RunFile] = (),
    snapshot: Snapshot | None = None,
) -> HiddenRows:
    """The rows that the merge of the units hides and those that the vectors of ``masked`` files mask.

    Nothing runs before an action; ``snapshot`` is the one that the files are of, which may go before it. Up to
    ``lakelsm.hidden-rows.max-memory`` of them are kept a session and table.
    """
    size, most = _most_bytes(units, masked), store.options.lakelsm_hidden_rows_max_memory
    if size > most:
        return HiddenRows(_found(spark, store, schemas, units, masked, snapshot), found_before=False)
    owner = _Owner(spark.sparkContext.applicationId, spark._jsparkSession.sessionUUID(), store.paths.branch_root)
    state = _State(tuple(units), tuple(masked), MergeSpec.of(store.schema, store.options), store.schema.id)
    with _lock:
        _forget_other_applications(owner.application)
        kept = _kept.setdefault(owner, OrderedDict())
        known = kept.pop(state, None)
        chunks = known.chunks if known else _found(spark, store, schemas, units, masked, snapshot).persist()
        kept[state] = _Kept(chunks, size)
        while sum(one.size for one in kept.values()) > most:
            kept.popitem(last=False)[1].chunks.unpersist()
    return HiddenRows(chunks, found_before=known is not None)


@dataclass(frozen=True)
class _Owner:
    """A session and a branch of a table: schemas with one id may differ between branches."""

    application: str
    session: str
    branch_root: str


@dataclass(frozen=True)
class _State:
    """All that hidden rows follow from. A file's name is never given twice, so its path stands for its rows."""

    units: tuple[MergeUnit, ...]
    masked: tuple[RunFile, ...]
    spec: MergeSpec
    schema_id: int


@dataclass(frozen=True)
class _Kept:
    chunks: DataFrame
    size: int


_kept: dict[_Owner, OrderedDict[_State, _Kept]] = {}
_lock = Lock()


def _forget_other_applications(application: str) -> None:
    """Let go of what ended sessions had: Spark has dropped it."""
    for owner in [owner for owner in _kept if owner.application != application]:
        del _kept[owner]


def _most_bytes(units: Sequence[MergeUnit], masked: Sequence[RunFile]) -> int:
    """What is kept at most: a bit a row, and for each unit that has a part of a file its plan and the rest of a chunk."""
    files = {file.path: file.row_count for file in (*masked, *(file for unit in units for file in unit.files))}
    parts = [*masked, *(file for unit in units for file in unit.files)]
    ends = sum(min(file.row_count, 1 << CHUNK_BITS) // 8 + _AROUND_WORDS for file in parts)
    return sum(files.values()) // 8 + ends


def _found(
    spark: SparkSession,
    store: TableStore,
    schemas: dict[int, TableSchema],
    units: Sequence[MergeUnit],
    masked: Sequence[RunFile],
    snapshot: Snapshot | None,
) -> DataFrame:
    parts = []
    if masked:
        packed = packed_for_tasks(store.options, masked, lambda file: [file])
        parts.append(read_units(spark, packed, OfSnapshot(store, snapshot, MaskedRows(store.file_io)), STALE_SCHEMA))
    if units:
        merged = packed_for_tasks(store.options, units, lambda unit: unit.files)
        parts.append(read_units(spark, merged, OfSnapshot(store, snapshot, StaleRows.of(store, schemas)), STALE_SCHEMA))
    return reduce(DataFrame.unionAll, parts)
