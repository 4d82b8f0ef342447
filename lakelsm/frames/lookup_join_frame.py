"""Joins a DataFrame of facts with a table's rows by key. Tasks look up each batch in a cache on their machine: neither
side is shuffled, and the cost depends on the batch, not on the table. Batches and streams use the same code.

Optionally the facts are shuffled by the table's buckets, one task for each group of buckets, so that a task opens only
the buckets of its group.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from lakelsm.errors import InvalidInputError
from lakelsm.format.row.bucket_hash import hash_rows
from lakelsm.frames.bucket_expression import with_bucket
from lakelsm.frames.prepare import as_key, value_type
from lakelsm.schema.identifiers import folded, match
from lakelsm.schema.row_rules import is_comparable
from lakelsm.schema.system_columns import BUCKET, BUCKET_KEY
from lakelsm.schema.table_schema import TableSchema
from lakelsm.spark import functions as F
from lakelsm.spark.functions import functions_of
from lakelsm.spark.session import checked_rows
from lakelsm.spark.spark_runner import SparkRunner
from lakelsm.spark.spark_types import to_spark, to_spark_arrow
from lakelsm.spark.tasks import map_batches
from lakelsm.types import DataField
from lakelsm.write.fixed_buckets import FixedBuckets


class JoinTaskMaker(Protocol):
    """Creates the task that joins one batch of facts, when the schema of the batches is known."""

    def __call__(
        self, keys: tuple[int, ...], found: pa.Schema, *, groups: int | None
    ) -> Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]:
        """Return the task. ``keys`` are the indexes of the key columns in a batch; it appends the columns of ``found``.

        ``groups`` (None: facts are not shuffled): the last column is the bucket of each fact, and the task gets the facts
        of some groups, which are remainders of the bucket modulo ``groups``.
        """


@dataclass(frozen=True)
class FrameJoin:
    """A join of facts with a table, as a function of the facts.

    ``keys`` are the table's columns by the fact columns with their values. ``columns`` are added, by their names in the
    result. ``buckets``: the facts are shuffled by the table's buckets (None: they are not shuffled).
    """

    table: str
    schema: TableSchema
    _: KW_ONLY
    keys: Mapping[str, DataField]
    columns: Mapping[str, DataField]
    task: JoinTaskMaker
    buckets: FixedBuckets | None = None

    def __call__(self, facts: DataFrame) -> DataFrame:
        """Return the facts with the table's columns. Nothing runs before an action.

        Raises InvalidInputError for a fact column that is missing or of another type than the key's, and for a duplicate
        name.
        """
        with functions_of(checked_rows("facts", facts)):
            return self._joined(facts)

    def _joined(self, facts: DataFrame) -> DataFrame:
        given = facts.schema.fields
        names = [field.name for field in given]
        self._check_names(names)
        keys = tuple(self._index_of(name, names) for name in self.keys)
        for at, key in zip(keys, self.keys.values()):
            self._check_type(given[at], key)
        fields = tuple(self.columns.values())
        found = pa.schema(
            [field.with_name(name).with_nullable(True) for name, field in zip(self.columns, to_spark_arrow(fields))]
        )
        added = T.StructType([T.StructField(name, to_spark(field.type)) for name, field in self.columns.items()])
        groups = None
        if self.buckets is not None:
            groups = min(self.buckets.number, SparkRunner(facts.sparkSession).cores)
            facts = self._by_bucket(facts, dict(zip((key.name for key in self.keys.values()), keys)), groups)
        joined = map_batches(facts, self.task(keys, found, groups=groups), added)
        return joined if groups is None else joined.drop(BUCKET)

    def _index_of(self, name: str, names: list[str]) -> int:
        """Return the index of a fact column by name, in any case."""
        found = match(name, names)
        if found is None:
            raise InvalidInputError(
                f"on: the facts have no column '{name}'. Columns: {', '.join(names)}. If the names differ, pass "
                "on={'fact column': 'table column'}."
            )
        return names.index(found)

    def _check_type(self, given: T.StructField, key: DataField) -> None:
        if not _is_comparable(given.dataType, key):
            wanted, kind = to_spark(key.type).simpleString(), given.dataType.simpleString()
            raise InvalidInputError(
                f"on: fact column '{given.name}' is {kind}, but column '{key.name}' of {self.table}, {key.type.sql()}, "
                f"is {wanted} in Spark. Cast it before the join: F.col('{given.name}').cast('{wanted}')."
            )

    def _check_names(self, names: list[str]) -> None:
        known = Counter(map(folded, names))
        twice = sorted({name for name in names if known[folded(name)] > 1})
        if twice:
            raise InvalidInputError(
                f"facts: column {', '.join(twice)} occurs more than once. Rename or drop one (Spark ignores case)."
            )
        for name, field in self.columns.items():
            if folded(name) in known:
                raise InvalidInputError(
                    f"columns: '{name}' of {self.table} is also a column of the facts. Rename one, for example with "
                    f"columns={{'{field.name}': '{name}_of_table', ...}}, or leave it out of columns."
                )

    def _by_bucket(self, facts: DataFrame, indexes: Mapping[str, int], groups: int) -> DataFrame:
        """Return the facts with their bucket, one task for each group of buckets; ``indexes`` are of the key columns."""
        assert self.buckets is not None
        names = facts.columns
        plain = facts.toDF(*(f"c{at}" for at in range(len(names))))
        hashed = tuple(replace(key, name=BUCKET_KEY.format(at)) for at, key in enumerate(self.buckets.keys))
        keys = [
            as_key(F.col(f"c{indexes[own.name]}").try_cast(to_spark(own.type)), own, self.schema).alias(key.name)
            for own, key in zip(self.buckets.keys, hashed)
        ]
        bucketed = with_bucket(plain.select("*", *keys), replace(self.buckets, keys=hashed))
        bucketed = bucketed.drop(*(key.name for key in hashed)).toDF(*names, BUCKET)
        return bucketed.repartition(groups, _partition_of(F.col(BUCKET) % groups, groups))


def _is_comparable(given: T.DataType, key: DataField) -> bool:
    """Return whether values of a Spark type are comparable with those of a column by value."""
    try:
        return is_comparable(value_type(given), key.type)
    except InvalidInputError:  # The Spark type has no Paimon type.
        return False


def _partition_of(group: Column, groups: int) -> Column:
    """Return a number whose hash makes Spark put each group into a separate partition."""
    numbers: dict[int, int] = {}
    number = 0
    while len(numbers) < groups:
        step = np.arange(number, number + 4 * groups, dtype=np.int32)
        # Spark's hash of an INT is the hash of a row of four bytes.
        hashes = hash_rows(pa.array([struct.pack("<i", each) for each in step.tolist()], pa.binary()))
        for each, partition in zip(step.tolist(), (hashes % groups).tolist()):
            numbers.setdefault(partition, each)
        number += 4 * groups
    chosen = F.array(*(F.lit(numbers[partition]).cast("int") for partition in range(groups)))
    return F.get(chosen, group)
