"""The rows that a read leaves out, found by tasks: those that a merge hides, and those that deletion vectors mask.

They depend on nothing but files, which never change, and on how the table merges. So they are kept for the next read of
the same files in a session: Spark caches what the tasks yield, when an action needs it first. Each table has its bound,
and so has the process. What is of a session that was stopped, or that nobody refers to, is dropped by the next read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
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

#: Bytes around the words of a file's part: the driver keeps what is planned of it.
_AROUND_WORDS = 1 << 10
#: What is kept of all tables and sessions: bytes, unless one table may have more, and states of tables.
_MAX_BYTES = 256 << 20
_MAX_STATES = 100


@dataclass(frozen=True)
class HiddenRows:
    """What is left out of some files, as rows of `HIDDEN_SCHEMA`. ``found_before``: a read asked for the same."""

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
    size, max_bytes = _max_bytes(units, masked), store.options.lakelsm_hidden_rows_max_memory
    if size > max_bytes:
        return HiddenRows(_found(spark, store, schemas, units, masked, snapshot), found_before=False)
    owner = _Owner(ref(spark), store.paths.branch_root)
    state = _State(
        owner=owner,
        units=tuple(units),
        masked=tuple(masked),
        spec=MergeSpec.of(store.schema, store.options),
        schema_id=store.schema.id,
    )
    with _lock:
        _drop([state for state, kept in _kept.items() if state.owner.session() is None or not _runs(kept.context)])
        known = _kept.pop(state, None)
        if known is None:
            found = _found(spark, store, schemas, units, masked, snapshot).persist()
            _kept[state] = _PersistedFrame(found._jdf, size, spark.sparkContext)
        else:
            _kept[state] = known
        _drop(_surplus([state for state in _kept if state.owner == owner], max_bytes, _MAX_STATES))
        _drop(_surplus(list(_kept), max(max_bytes, _MAX_BYTES), _MAX_STATES))
        # The cache refers to no session, or none would ever be dropped.
        chunks = found if known is None else DataFrame(known.frame, spark)
    return HiddenRows(chunks, found_before=known is not None)


def forget_table(root: str) -> None:
    """Drop what is kept of a table, in all sessions. ``root`` is its directory."""
    with _lock:
        _drop([state for state in _kept if f"{state.owner.branch_root}/".startswith(f"{root}/")])


@dataclass(frozen=True)
class _Owner:
    """A session, as long as there is one, and a branch of a table: schemas with one id may differ between branches."""

    session: ref[SparkSession]
    branch_root: str


@dataclass(frozen=True, kw_only=True)
class _State:
    """All that hidden rows follow from. A file's name is never given twice, so its path stands for its rows."""

    owner: _Owner
    units: tuple[MergeUnit, ...]
    masked: tuple[RunFile, ...]
    spec: MergeSpec
    schema_id: int


@dataclass(frozen=True)
class _PersistedFrame:
    """A persisted frame of Spark's, without the session of PySpark's."""

    frame: JavaObject
    size: int
    context: SparkContext


#: The one that was not used for longest is the first.
_kept: OrderedDict[_State, _PersistedFrame] = OrderedDict()
_lock = Lock()


def _surplus(states: list[_State], max_bytes: int, max_states: int) -> list[_State]:
    """The first of some states, without which the others are within the bounds."""
    size, first = sum(_kept[state].size for state in states), 0
    while size > max_bytes or len(states) - first > max_states:
        size -= _kept[states[first]].size
        first += 1
    return states[:first]


def _drop(states: list[_State]) -> None:
    """Spark computes again what a frame still needs of it."""
    for state in states:
        kept = _kept.pop(state)
        if _runs(kept.context):  # Else Spark has dropped it.
            kept.frame.unpersist(False)


def _runs(context: SparkContext) -> bool:
    return context._jsc is not None


def _max_bytes(units: Sequence[MergeUnit], masked: Sequence[RunFile]) -> int:
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
        packed = pack_for_tasks(store.options, masked, lambda file: [file])
        find_masked = SnapshotGuard(store, (snapshot,), MaskedRowTask(store.file_io))
        parts.append(read_units(spark, packed, find_masked, HIDDEN_SCHEMA))
    if units:
        merged = pack_for_tasks(store.options, units, lambda unit: unit.files)
        task = SnapshotGuard(store, (snapshot,), HiddenRowTask.of(store, schemas))
        parts.append(read_units(spark, merged, task, HIDDEN_SCHEMA))
    return reduce(DataFrame.unionAll, parts)
