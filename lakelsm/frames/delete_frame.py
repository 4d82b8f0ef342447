"""The rows that a delete writes: -D rows of the keys that match, as a snapshot has them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

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
from lakelsm.spark.expressions import filtered, predicate_of, quoted
from lakelsm.spark.spark_types import exact_fields
from lakelsm.spark.task_errors import CHECK_PREFIX, translated_errors


def retractions(spark: SparkSession, store: TableStore, where: str, snapshot: Snapshot | None) -> DataFrame:
    """The prepared -D rows of what matches the condition in a snapshot (None: an empty table).

    Raises InvalidInputError or UnsupportedFeatureError where they would not remove the rows.
    """
    return _retracted(store, matching_rows(spark, store, where, snapshot))


def key_retractions(spark: SparkSession, store: TableStore, keys: DataFrame, snapshot: Snapshot | None) -> DataFrame:
    """The prepared -D rows of what has one of some keys (`prepared_keys`). The rest is as in `retractions`."""
    check_microseconds(store, store.schema.primary_keys, "a delete by keys")
    with translated_errors(store.paths.root):
        rows = scan_frame(spark, store, plan_read(store, snapshot, None, fresh=True), exact=True)
    # Both sides are named: the table may have columns k0, k1 ... of its own.
    shown, wanted = rows.alias("shown"), keys.alias("wanted")
    names = {name: f"k{at}" for at, name in enumerate(store.schema.primary_keys)}
    same = [F.col(f"wanted.{of_keys}").eqNullSafe(_key(store, name, "shown")) for name, of_keys in names.items()]
    return _retracted(store, shown.join(wanted, reduce(Column.__and__, same), "left_semi"))


def prepared_keys(store: TableStore, frame: DataFrame) -> DataFrame:
    """The keys of a frame as columns k0, k1 ..., checked. Raises InvalidInputError for other columns than the key's."""
    schema = key_schema(store.schema, frame.columns)
    keys = prepare(frame, schema, TableOptions.parse({}))
    return keys.select(*(_key(store, name).alias(f"k{at}") for at, name in enumerate(schema.primary_keys)))


def _key(store: TableStore, name: str, alias: str | None = None) -> Column:
    """A key column as keys compare: Spark takes -0.0 for 0.0, and they are two partitions."""
    column = quoted(name, alias)
    is_float = store.schema.field(name).type.root in ("FLOAT", "DOUBLE")
    if is_float and name in store.schema.partition_keys:
        return F.struct(column, column.cast("string"))
    return column


def _retracted(store: TableStore, rows: DataFrame) -> DataFrame:
    """Rows of the table as prepared -D rows."""
    check_deletable(store.name, store.options)
    kind = F.lit(ROW_KINDS[DELETE])
    empty = [quoted(name).isNull() for name in MergeSpec.of(store.schema, store.options).removing_sequences]
    if empty:
        lost = F.raise_error(F.lit(CHECK_PREFIX + NO_SEQUENCE_FAULT))
        kind = F.when(reduce(Column.__and__, empty), lost).otherwise(kind)
    return prepared_changes(store, rows, {}, kind)


def matching_rows(spark: SparkSession, store: TableStore, where: str, snapshot: Snapshot | None) -> DataFrame:
    """The rows of a snapshot that match, as those who change them judge them: the merged rows of all levels.

    They have the table's `exact_fields` too.
    """
    predicate = predicate_of(spark, store.schema.fields, where)
    with translated_errors(store.paths.root):
        return filtered(scan_frame(spark, store, plan_read(store, snapshot, predicate, fresh=True), exact=True), where)


def prepared_changes(store: TableStore, rows: DataFrame, new: Mapping[str, Column], kind: Column) -> DataFrame:
    """Rows of the table that are written again, prepared as rows of a kind (the text of it).

    The rows have the table's `exact_fields`; columns have ``new`` values, or else keep theirs to the nanosecond.
    """
    own = store.options.rowkind_field
    exact = exact_fields(store.schema.fields)
    values = {name: quoted(exact[name].name if name in exact else name) for name in store.schema.field_names}
    values |= {**new, own or CHANGED_KIND: kind}
    changed = rows.select(*(value.alias(name) for name, value in values.items()))
    return prepare(changed, store.schema, store.options, None if own else CHANGED_KIND, stored=True)
