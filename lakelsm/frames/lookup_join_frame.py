"""Facts joined with the rows that a table has of their keys. Tasks look each batch up in a cache on their machine:
neither side is shuffled, and the cost follows the batch and not the table. Batches and streams are the same to it.

By bucket, the facts are shuffled by the bucket that their key has in the table, one task a group of buckets, so that a
task opens only the buckets of its group.
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
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelsm.errors import InvalidInputError
from lakelsm.format.row.bucket_hash import hash_rows
from lakelsm.frames.bucket_expression import with_bucket
from lakelsm.frames.prepare import as_key, value_type
from lakelsm.schema.identifiers import folded, match
from lakelsm.schema.row_rules import is_comparable
from lakelsm.schema.system_columns import BUCKET, BUCKET_KEY
from lakelsm.schema.table_schema import TableSchema
from lakelsm.spark.session import checked_rows
from lakelsm.spark.spark_types import to_spark, to_spark_arrow
from lakelsm.spark.tasks import map_batches
from lakelsm.types import DataField
from lakelsm.write.fixed_buckets import FixedBuckets


class JoinTaskMaker(Protocol):
    """Makes the task of a join, which joins one batch of facts, once it is known what the batches are like."""

    def __call__(
        self, keys: tuple[int, ...], found: pa.Schema, *, groups: int | None
    ) -> Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]:
        """``keys`` are the indexes of the key's values in a batch; the columns of ``found`` are added to it.

        ``groups`` (None: facts come as they are): the last column is the bucket of each fact, of which a task has those
        of some groups, which are remainders by ``groups``.
        """


@dataclass(frozen=True)
class FrameJoin:
    """A join of facts with a table, as a function of the facts.

    ``keys`` are columns of the table by the fact column that has their values, ``columns`` those that are added by their
    names in the result. ``buckets`` (None: facts stay where they are): the facts are shuffled by the table's buckets.
    """

    table: str
    schema: TableSchema
    _: KW_ONLY
    keys: Mapping[str, DataField]
    columns: Mapping[str, DataField]
    task: JoinTaskMaker
    buckets: FixedBuckets | None = None

    def __call__(self, facts: DataFrame) -> DataFrame:
        """The facts with the table's columns; nothing runs before an action.

        Raises InvalidInputError for a fact column that is missing or of another type than the key's, and for a name that
        comes twice.
        """
        given = checked_rows("facts", facts).schema.fields
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
            groups = min(self.buckets.number, facts.sparkSession.sparkContext.defaultParallelism)
            facts = self._by_bucket(facts, dict(zip((key.name for key in self.keys.values()), keys)), groups)
        joined = map_batches(facts, self.task(keys, found, groups=groups), added)
        return joined if groups is None else joined.drop(BUCKET)

    def _index_of(self, name: str, names: list[str]) -> int:
        """Where the facts have a column, whose name may be written in another case."""
        found = match(name, names)
        if found is None:
            raise InvalidInputError(
                f"on names '{name}', which the facts lack; they have {', '.join(names)}. Where the table's column has "
                "another name than the facts', write on={'fact column': 'table column'}."
            )
        return names.index(found)

    def _check_type(self, given: T.StructField, key: DataField) -> None:
        if not _is_comparable(given.dataType, key):
            wanted, kind = to_spark(key.type).simpleString(), given.dataType.simpleString()
            raise InvalidInputError(
                f"Fact column '{given.name}' is {kind}, and column '{key.name}' of {self.table}, "
                f"{key.type.sql()}, is {wanted} in Spark: cast the facts' before the join, "
                f"F.col('{given.name}').cast('{wanted}')."
            )

    def _check_names(self, names: list[str]) -> None:
        known = Counter(map(folded, names))
        twice = sorted({name for name in names if known[folded(name)] > 1})
        if twice:
            raise InvalidInputError(
                f"The facts have column {', '.join(twice)} more than once: rename or drop one (Spark ignores case)."
            )
        for name, field in self.columns.items():
            if folded(name) in known:
                raise InvalidInputError(
                    f"The facts have a column '{name}', as the rows of {self.table} would: name the table's otherwise, "
                    f"columns={{'{field.name}': '{name}_of_table', ...}}, leave it out of columns, or rename the facts'."
                )

    def _by_bucket(self, facts: DataFrame, indexes: Mapping[str, int], groups: int) -> DataFrame:
        """The facts with their bucket, those of a group of buckets in one task; ``indexes`` are of the key's columns."""
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
    """Whether values of a Spark type are equal to those of a column or not by what they are."""
    try:
        return is_comparable(value_type(given), key.type)
    except InvalidInputError:  # Paimon has no type for it.
        return False


def _partition_of(group: Column, groups: int) -> Column:
    """A number by whose hash Spark puts each group into a partition of its own, where there are as many."""
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
