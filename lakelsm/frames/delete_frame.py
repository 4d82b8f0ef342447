"""The rows that a delete writes: -D rows for the keys of matching rows in a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession

from lakelsm.format.row_kinds import DELETE, ROW_KINDS
from lakelsm.format.snapshot import Snapshot
from lakelsm.frames.prepare import prepare
from lakelsm.frames.scan_frame import scan_frame
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.options import TableOptions
from lakelsm.plan.read_plan import plan_read
from lakelsm.plan.update_plan import NO_SEQUENCE_FAULT, check_microseconds
from lakelsm.schema.engine_rules import check_deletable
from lakelsm.schema.row_rules import key_schema
from lakelsm.schema.system_columns import CHANGED_KIND
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark import functions as F
from lakelsm.spark.expressions import filtered, predicate_of, quoted
from lakelsm.spark.functions import functions_of, of_session
from lakelsm.spark.spark_types import exact_fields
from lakelsm.spark.task_errors import CHECK_PREFIX, translated_errors


@of_session
def retractions(spark: SparkSession, store: TableStore, where: str, snapshot: Snapshot | None) -> DataFrame:
    """Return prepared -D rows for the rows of a snapshot that match the condition (None: an empty table).

    Raises InvalidInputError or UnsupportedFeatureError if -D rows would not remove them.
    """
    return _retracted(store, matching_rows(spark, store, where, snapshot))


@of_session
def key_retractions(spark: SparkSession, store: TableStore, keys: DataFrame, snapshot: Snapshot | None) -> DataFrame:
    """Return prepared -D rows for the rows that have one of the keys (`prepared_keys`); else as `retractions`."""
    check_microseconds(store, store.schema.primary_keys, "a delete by keys")
    with translated_errors(store.paths.root):
        rows = scan_frame(spark, store, plan_read(store, snapshot, None, fresh=True), exact=True)
    # Both sides have aliases, because the table may have columns named k0, k1 ...
    shown, wanted = rows.alias("shown"), keys.alias("wanted")
    names = {name: f"k{at}" for at, name in enumerate(store.schema.primary_keys)}
    same = [F.col(f"wanted.{of_keys}").eqNullSafe(_key(store, name, "shown")) for name, of_keys in names.items()]
    return _retracted(store, shown.join(wanted, reduce(and_, same), "left_semi"))


def prepared_keys(store: TableStore, frame: DataFrame) -> DataFrame:
    """Check the keys of a frame and return them as columns k0, k1 ... Only key columns are accepted."""
    schema = key_schema(store.schema, frame.columns)
    keys = prepare(frame, schema, TableOptions.parse({}))
    with functions_of(frame):
        return keys.select(*(_key(store, name).alias(f"k{at}") for at, name in enumerate(schema.primary_keys)))


def _key(store: TableStore, name: str, alias: str | None = None) -> Column:
    """Return a key column in the form that keys compare by: Spark treats -0.0 as 0.0, but they are two partitions."""
    column = quoted(name, alias)
    is_float = store.schema.field(name).type.root in ("FLOAT", "DOUBLE")
    if is_float and name in store.schema.partition_keys:
        return F.struct(column, column.cast("string"))
    return column


def _retracted(store: TableStore, rows: DataFrame) -> DataFrame:
    """Return rows of the table as prepared -D rows."""
    check_deletable(store.name, store.options)
    kind = F.lit(ROW_KINDS[DELETE])
    empty = [quoted(name).isNull() for name in MergeSpec.of(store.schema, store.options).removing_sequences]
    if empty:
        lost = F.raise_error(F.lit(CHECK_PREFIX + NO_SEQUENCE_FAULT))
        kind = F.when(reduce(and_, empty), lost).otherwise(kind)
    return prepared_changes(store, rows, {}, kind)


def matching_rows(spark: SparkSession, store: TableStore, where: str, snapshot: Snapshot | None) -> DataFrame:
    """Return the rows of a snapshot that match, for deletes and updates: the merged rows of all levels.

    The table's `exact_fields` follow its columns.
    """
    predicate = predicate_of(spark, store.schema.fields, where)
    with translated_errors(store.paths.root):
        return filtered(scan_frame(spark, store, plan_read(store, snapshot, predicate, fresh=True), exact=True), where)


def prepared_changes(store: TableStore, rows: DataFrame, new: Mapping[str, Column], kind: Column) -> DataFrame:
    """Prepare rows of the table to be written again with a row kind, given as text.

    The rows have the table's `exact_fields`. Columns get the ``new`` values or keep theirs to the nanosecond.
    """
    own = store.options.rowkind_field
    exact = exact_fields(store.schema.fields)
    values = {name: quoted(exact[name].name if name in exact else name) for name in store.schema.field_names}
    values |= {**new, own or CHANGED_KIND: kind}
    changed = rows.select(*(value.alias(name) for name, value in values.items()))
    return prepare(changed, store.schema, store.options, None if own else CHANGED_KIND, stored=True)
