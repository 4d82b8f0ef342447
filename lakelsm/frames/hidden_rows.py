"""The rows that a read leaves out, found by tasks: rows that a merge hides, and rows that deletion vectors mask.

They depend only on files, which never change, and on how the table merges. Therefore they are kept for later reads of the
same files in the session: Spark caches the rows of the tasks when an action first needs them. Each table has a limit,
and so has the process. The next read drops the rows of a session that has stopped or is no longer referenced.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING
from weakref import ref

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakelsm.format.snapshot import Snapshot
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.plan.merge_units import pack_for_tasks
from lakelsm.read.hidden_row_task import CHUNK_BITS, HiddenRowTask, MaskedRowTask
from lakelsm.read.snapshot_guard import SnapshotGuard
from lakelsm.schema.system_columns import HIDDEN_CHUNK, HIDDEN_FILE, HIDDEN_SIZE, HIDDEN_WORDS
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.connect import is_connect
from lakelsm.spark.expressions import union_all
from lakelsm.spark.tasks import read_units

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

#: Spark's schema of `hidden_chunks`.
HIDDEN_SCHEMA = T.StructType(
    [
        T.StructField(HIDDEN_FILE, T.StringType()),
        T.StructField(HIDDEN_SIZE, T.LongType()),
        T.StructField(HIDDEN_CHUNK, T.LongType()),
        T.StructField(HIDDEN_WORDS, T.ArrayType(T.LongType())),
    ]
)

#: Bytes for each part of a file besides its bits: the driver keeps the plan of the part.
_CHUNK_OVERHEAD = 1 << 10
#: Limits of all tables and sessions together: bytes (unless one table may have more), and cached states.
_MAX_CACHED_BYTES = 256 << 20
_MAX_CACHED_STATES = 100


@dataclass(frozen=True)
class HiddenRows:
    """Rows to leave out of some files, in `HIDDEN_SCHEMA`. ``is_cached``: an earlier read requested the same rows."""

    chunks: DataFrame
    is_cached: bool


def hidden_rows(
    spark: SparkSession,
    store: TableStore,
    schemas: dict[int, TableSchema],
    units: Sequence[MergeUnit],
    masked: Sequence[RunFile] = (),
    snapshot: Snapshot | None = None,
) -> HiddenRows:
    """Return the rows that the merge of the units hides and the rows that vectors of ``masked`` files mask.

    Nothing runs before an action. ``snapshot`` contains the files and may expire before it. Up to
    ``lakelsm.hidden-rows.max-memory`` of them are cached for each classic session and table. A Connect server would keep
    them after the end of its clients.
    """
    size, max_bytes = _max_bytes(units, masked), store.options.lakelsm_hidden_rows_max_memory
    if size > max_bytes or is_connect(spark):
        return HiddenRows(_computed(spark, store, schemas, units, masked, snapshot), is_cached=False)
    owner = _Owner(ref(spark), store.paths.branch_root)
    state = _State(
        owner=owner,
        units=tuple(units),
        masked=tuple(masked),
        spec=MergeSpec.of(store.schema, store.options),
        schema_id=store.schema.id,
    )
    with _lock:
        _drop([state for state, kept in _cache.items() if state.owner.session() is None or not _runs(kept.context)])
        known = _cache.pop(state, None)
        if known is None:
            found = _computed(spark, store, schemas, units, masked, snapshot).persist()
            _cache[state] = _PersistedFrame(found._jdf, size, spark.sparkContext)
        else:
            _cache[state] = known
        _drop(_surplus([state for state in _cache if state.owner == owner], max_bytes, _MAX_CACHED_STATES))
        _drop(_surplus(list(_cache), max(max_bytes, _MAX_CACHED_BYTES), _MAX_CACHED_STATES))
        # The cache must not refer to a session, or no session would ever be released.
        chunks = found if known is None else DataFrame(known.frame, spark)
    return HiddenRows(chunks, is_cached=known is not None)


def forget_table(root: str) -> None:
    """Drop the cached rows of a table, in all sessions. ``root`` is its directory."""
    with _lock:
        _drop([state for state in _cache if f"{state.owner.branch_root}/".startswith(f"{root}/")])


@dataclass(frozen=True)
class _Owner:
    """A session, weakly referenced, and a branch of a table: schemas with one id may differ between branches."""

    session: ref[SparkSession]
    branch_root: str


@dataclass(frozen=True, kw_only=True)
class _State:
    """All inputs of hidden rows. A file name is never used twice, so that a path identifies the file's rows."""

    owner: _Owner
    units: tuple[MergeUnit, ...]
    masked: tuple[RunFile, ...]
    spec: MergeSpec
    schema_id: int


@dataclass(frozen=True)
class _PersistedFrame:
    """A persisted frame of Spark's JVM, without PySpark's session."""

    frame: JavaObject
    size: int
    context: SparkContext


#: In the order of use, the least recently used first.
_cache: OrderedDict[_State, _PersistedFrame] = OrderedDict()
_lock = Lock()


def _surplus(states: list[_State], max_bytes: int, max_states: int) -> list[_State]:
    """Return the first states, as many as must be dropped to keep the others within the limits."""
    size, first = sum(_cache[state].size for state in states), 0
    while size > max_bytes or len(states) - first > max_states:
        size -= _cache[states[first]].size
        first += 1
    return states[:first]


def _drop(states: list[_State]) -> None:
    """Drop cached frames. Spark computes their rows again for a query that still needs them."""
    for state in states:
        kept = _cache.pop(state)
        if _runs(kept.context):  # Otherwise Spark has already dropped it.
            kept.frame.unpersist(False)


def _runs(context: SparkContext) -> bool:
    return context._jsc is not None


def _max_bytes(units: Sequence[MergeUnit], masked: Sequence[RunFile]) -> int:
    """Return the maximum size: a bit for each row, and for each file part of a unit its plan and an incomplete chunk."""
    files = {file.path: file.row_count for file in (*masked, *(file for unit in units for file in unit.files))}
    parts = [*masked, *(file for unit in units for file in unit.files)]
    ends = sum(min(file.row_count, 1 << CHUNK_BITS) // 8 + _CHUNK_OVERHEAD for file in parts)
    return sum(files.values()) // 8 + ends


def _computed(
    spark: SparkSession,
    store: TableStore,
    schemas: dict[int, TableSchema],
    units: Sequence[MergeUnit],
    masked: Sequence[RunFile],
    snapshot: Snapshot | None,
) -> DataFrame:
    parts = []
    if masked:
        packed = pack_for_tasks(store.options, masked, lambda file: [file])
        find_masked = SnapshotGuard(store, (snapshot,), MaskedRowTask(store.file_io))
        parts.append(read_units(spark, packed, find_masked, HIDDEN_SCHEMA))
    if units:
        merged = pack_for_tasks(store.options, units, lambda unit: unit.files)
        task = SnapshotGuard(store, (snapshot,), HiddenRowTask.of(store, schemas))
        parts.append(read_units(spark, merged, task, HIDDEN_SCHEMA))
    return union_all(parts)
