"""Whether others wrote the very keys of a delete: what decides where files of one bucket merely overlap."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from lakelsm.commit.append_conflict import Intervening, rewritten_in_range
from lakelsm.format.data_file.key_value_file import key_types
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.merge.key_order import rank_keys
from lakelsm.plan.merge_units import MergeUnits
from lakelsm.read.scan_frame import file_scans
from lakelsm.snapshots.manifest_scan import read_delta_entries
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.columns import quoted
from lakelsm.spark.task_errors import translated


def others_wrote_keys(
    spark: SparkSession, store: TableStore, ours: Sequence[ManifestEntry], after: int, upto: int
) -> bool:
    """Whether a snapshot after one id, up to another, wrote a key that the files ``ours`` have.

    Also where that cannot be told: a snapshot has expired, or an overwrite removed files in the range of the keys.
    """
    theirs: list[ManifestEntry] = []
    types = key_types(store.schema)
    for number in range(after + 1, upto + 1):
        snapshot = store.snapshots.try_get(number)
        if snapshot is None:
            return True
        delta = tuple(read_delta_entries(store.file_io, store.paths, snapshot))
        since = Intervening(snapshot.id, snapshot.commit_kind, snapshot.commit_user, delta)
        theirs += rewritten_in_range(ours, since, lambda keys: rank_keys(keys, types).tolist())
    if any(entry.kind is FileKind.DELETE for entry in theirs):
        return True
    if not theirs:
        return False
    with translated(store.paths.root):
        written, own = _keys(spark, store, theirs), _keys(spark, store, ours)
        return not written.join(own, written.columns, "left_semi").isEmpty()


def _keys(spark: SparkSession, store: TableStore, entries: Sequence[ManifestEntry]) -> DataFrame:
    """The primary keys in some files, as columns k0, k1 ..."""
    keys = [quoted(name).alias(f"k{at}") for at, name in enumerate(store.schema.primary_keys)]
    files = list(map(MergeUnits(store, entries).file_of, {entry.identity: entry for entry in entries}.values()))
    scans = file_scans(spark, store, store.schemas_of(file.schema_id for file in files), files)
    return reduce(DataFrame.unionAll, (scan.select(*keys) for scan in scans))
