"""Selects the manifests that may have entries of some partitions and buckets, by their statistics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakelsm.format.manifest import ManifestFileMeta
from lakelsm.format.manifest.partition_stats import comparable
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.types import DataType

#: The maximum number of partitions that are compared one by one; for more, only their common range is compared.
_MAX_PARTITIONS = 200


def select_manifests(
    metas: Sequence[ManifestFileMeta],
    changed: Mapping[bytes, Collection[int]],
    partition_types: Sequence[DataType],
) -> list[ManifestFileMeta]:
    """Return the manifests that may have an entry of a changed bucket.

    ``changed`` maps stored partitions (BinaryRow with arity) to bucket numbers. A manifest without bounds is kept.
    """
    if not changed:
        return []
    buckets = [bucket for numbers in changed.values() for bucket in numbers]
    near = [meta for meta in metas if _buckets_meet(meta, min(buckets), max(buckets))]
    if not partition_types or not near:
        return near
    lows = decode_rows([meta.partition_stats.min_values for meta in near], partition_types)
    highs = decode_rows([meta.partition_stats.max_values for meta in near], partition_types)
    wanted = decode_rows(list(changed), partition_types)
    verdicts = [True] * len(near)
    probes = _probes(wanted)
    bounds = list(zip(map(_values, lows), map(_values, highs), strict=True))
    for index, meta in enumerate(near):
        counts = meta.partition_stats.null_counts
        columns = [
            (low[index], high[index], None if not counts or column >= len(counts) else counts[column])
            for column, (low, high) in enumerate(bounds)
        ]
        verdicts[index] = any(
            all(_inside(*span, *column) for span, column in zip(probe, columns, strict=True))
            for probe in probes
        )
    return [meta for meta, verdict in zip(near, verdicts, strict=True) if verdict]


def _buckets_meet(meta: ManifestFileMeta, low: int, high: int) -> bool:
    if meta.min_bucket is None or meta.max_bucket is None:
        return True
    return meta.min_bucket <= high and low <= meta.max_bucket


def _values(column: pa.Array) -> list[Any]:
    values: list[Any] = comparable(column).to_pylist()
    return values


def _probes(wanted: Sequence[pa.Array]) -> list[list[tuple[Any, Any]]]:
    """Return a (low, high) for each column of each wanted partition; for many partitions, one range of all."""
    columns = [_values(column) for column in wanted]
    if len(columns[0]) <= _MAX_PARTITIONS:
        return [[(value, value) for value in row] for row in zip(*columns, strict=True)]
    merged = []
    for column in columns:
        merged.append((None, None) if None in column else (min(column), max(column)))
    return [merged] if all(low is not None for low, _ in merged) else [[(_ANY, _ANY)] * len(columns)]


_ANY = object()


def _inside(low: Any, high: Any, smallest: Any, largest: Any, nulls: int | None) -> bool:
    """Return whether a column with these bounds and null count may have a value from ``low`` to ``high``."""
    if low is _ANY:
        return True
    if low is None:
        return nulls is None or nulls > 0
    if smallest is None or largest is None:
        # Without bounds the answer is unknown: the statistics do not say whether all values are NULL.
        return True
    return bool(smallest <= high and low <= largest)
