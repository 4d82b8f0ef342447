"""Finds the rows of keys in the lookup files of the data files that may have them (Paimon's `LocalTableQuery`).

A key is searched only in its bucket, there only in files whose key range contains it, and in older files only if
newer files do not decide. Versions of a key from several files are merged by the kernel of all merges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from lakelsm.format.row.single_hash import SingleHash
from lakelsm.format.row_kinds import RETRACTIONS, is_retract
from lakelsm.local.arrow_rows import normalized_floats
from lakelsm.lookup.cache import FoundRows, Longs
from lakelsm.lookup.partial.live_buckets import KeyRanges, LiveBucket, LiveBuckets, Run
from lakelsm.lookup.partial.lookup_files import LookupFiles
from lakelsm.lookup.partial.row_masks import RowMasks
from lakelsm.merge.grouped_rows import Mask
from lakelsm.merge.kernel import merge_rows
from lakelsm.merge.key_levels import merge_candidates
from lakelsm.merge.merge_unit import RunFile
from lakelsm.options import MergeEngine
from lakelsm.predicate.evaluation import matching
from lakelsm.schema.system_columns import POSITION, ROW, VALUE_KIND
from lakelsm.types import arrow_field, contiguous

#: Slots of keys that were found, and the row of each.
_Found: TypeAlias = tuple[Longs, pa.Table]
#: A data file, and the slots and keys to find in it.
_FileSearch: TypeAlias = tuple[RunFile, Longs, pa.Table]


@dataclass(frozen=True)
class _Slots:
    """A slot for each key and each bucket in which it is searched; ``owners`` has each slot's index in ``probes``."""

    probes: pa.RecordBatch
    owners: Longs

    def with_keys(self, slots: Longs, rows: pa.Table) -> pa.Table:
        """Add the key columns to rows of some slots; stores do not contain them twice."""
        owners = self.owners[slots]
        probes = self.probes
        if not np.array_equal(owners, np.arange(len(probes))):
            probes = probes.take(pa.array(owners))
        for field, column in zip(probes.schema, probes.columns):
            rows = rows.append_column(field, column)
        return rows


@dataclass(frozen=True)
class _BucketSearch:
    """The keys to find in one bucket. Each has a slot; the slots of a search are consecutive, from ``first``."""

    bucket: LiveBucket
    first: int
    keys: pa.Table
    ranges: KeyRanges

    def of_run(self, run: Run, wanted: Longs) -> Iterator[_FileSearch]:
        """Yield the searches of a run's files for the keys at ``wanted``."""
        for number, key_indexes in self.ranges.of_run(run, wanted):
            keys = self.keys if len(key_indexes) == len(self.keys) else self.keys.take(pa.array(key_indexes))
            yield self.bucket.files[number], key_indexes + self.first, keys


class LocalTableQuery:
    """Looks keys up in the files of one state of a table."""

    def __init__(self, live: LiveBuckets, files: LookupFiles, masks: RowMasks) -> None:
        self.live = live
        self.files = files
        self.masks = masks
        spec, names = live.spec, files.stored.value_names
        schema = spec.store.schema
        kinds = [schema.field(name).type for name in schema.primary_keys]
        self._takes_one = spec.predicate is None and SingleHash(kinds).is_plain
        self._trimmed = tuple(map(spec.key.index, schema.trimmed_primary_keys))
        #: The position of each column in the row of a store, or (negative) in the key.
        self._columns = [-spec.key.index(name) - 1 if name in spec.key else names.index(name) for name in spec.columns]
        self._kind = names.index(VALUE_KIND)
        self._position = names.index(POSITION) if POSITION in names else None

    def find_plain(self, key: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """Return the rows of one key without building arrays, which takes longer than the search; see `Cache.find_plain`.

        Return None if rows of several files may have to be merged, if there is a condition, if Python compares values of
        the key differently, or if a file has no store yet: `find` answers these.
        """
        if not self._takes_one:
            return None
        trimmed = tuple([key[at] for at in self._trimmed])
        rows: list[tuple[Any, ...]] = []
        for bucket in self.live.single.of(key):
            runs = bucket.single_runs
            if runs is None:
                return None
            for run in runs:
                file = run.file_of(trimmed)
                if file is None:
                    continue
                found = self.files.find_plain(file, trimmed)
                if found is None:
                    return None
                if found and self._decides(file, found[0]):
                    if found[0][self._kind] not in RETRACTIONS:
                        rows.append(tuple([key[-at - 1] if at < 0 else found[0][at] for at in self._columns]))
                    break
        return rows

    def find(self, keys: pa.Table) -> FoundRows:
        """Find the rows of some keys; see `Cache.find`."""
        searches, slots = self._searches(self._as_stored(keys))
        wanted: Mask = np.ones(len(slots.owners), np.bool_)
        found: list[_Found] = []
        for depth in range(max((len(search.bucket.groups) for search in searches), default=0)):
            found += self._group(searches, slots, depth, wanted)
        return self._answer(slots, found)

    def _decides(self, file: RunFile, row: tuple[Any, ...]) -> bool:
        """Return whether a row of a store decides its key: it is not masked, and the merge does not skip it."""
        merge = self.files.stored.merge
        if merge.engine is MergeEngine.DEDUPLICATE and merge.ignore_delete and row[self._kind] in RETRACTIONS:
            return False
        return self._position is None or self.masks.masked(file, np.array([row[self._position]])) is None

    def _as_stored(self, keys: pa.Table) -> pa.RecordBatch:
        """Return the columns of the primary key, in its order, in the bit patterns that are stored."""
        schema = self.live.spec.store.schema
        fields = [schema.field(name) for name in schema.primary_keys]
        columns = [
            normalized_floats(contiguous(keys.column(field.name)), zeros=field.name in schema.partition_keys)
            for field in fields
        ]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(map(arrow_field, fields)))

    def _searches(self, probes: pa.RecordBatch) -> tuple[list[_BucketSearch], _Slots]:
        """Return the searches of the buckets, and their slots."""
        names = [field.name for field in self.files.stored.keys]
        searches: list[_BucketSearch] = []
        owners: list[Longs] = []
        first = 0
        for bucket, key_indexes in self.live.buckets_of(probes) if len(probes) else ():
            keys = pa.Table.from_batches([probes]).select(names)
            if len(key_indexes) < len(probes):
                keys = keys.take(pa.array(key_indexes))
            ranges = bucket.key_ranges([contiguous(column) for column in keys.columns])
            searches.append(_BucketSearch(bucket, first, keys, ranges))
            owners.append(key_indexes)
            first += len(key_indexes)
        return searches, _Slots(probes, np.concatenate([np.empty(0, np.int64), *owners]))

    def _group(
        self, searches: Sequence[_BucketSearch], slots: _Slots, depth: int, wanted: Mask
    ) -> Iterator[_Found]:
        """Yield the merged rows of the ``wanted`` slots from one group of each bucket, without retractions.

        Slots that have rows are removed from ``wanted``.
        """
        tasks: list[_FileSearch] = []
        for search in searches:
            open_ = np.flatnonzero(wanted[search.first : search.first + len(search.keys)])
            if depth < len(search.bucket.groups) and len(open_):
                for run in search.bucket.groups[depth]:
                    tasks += search.of_run(run, open_)
        every = self.files.find([(file, keys) for file, _, keys in tasks])
        hits = [(file, *self._shown(file, own, found)) for (file, own, _), found in zip(tasks, every)]
        hits = [hit for hit in hits if len(hit[1])]
        if not hits:
            return
        found = np.concatenate([own for _, own, _ in hits])
        rows = pa.concat_tables([table for _, _, table in hits])
        if int(np.bincount(found).max()) > 1:
            levels = np.repeat([file.level for file, _, _ in hits], [len(own) for _, own, _ in hits])
            found, rows = self._merged(found, slots.with_keys(found, rows), levels)
        wanted[found] = False
        retract = is_retract(rows.column(VALUE_KIND))
        yield (found[~retract], rows.filter(pa.array(~retract))) if retract.any() else (found, rows)

    def _shown(self, file: RunFile, file_slots: Longs, found: FoundRows) -> _Found:
        """Remove rows that deletion vectors mask, and rows that the merge skips."""
        slots, rows = file_slots[found.probes], found.rows
        merge = self.files.stored.merge
        skipped = None
        if self.files.stored.positions:
            skipped = self.masks.masked(file, rows.column(POSITION).to_numpy())
            rows = rows.drop_columns([POSITION])
        if merge.engine is MergeEngine.DEDUPLICATE and merge.ignore_delete:
            retract = is_retract(rows.column(VALUE_KIND))
            skipped = retract if skipped is None else skipped | retract
        return (slots, rows) if skipped is None else (slots[~skipped], rows.filter(pa.array(~skipped)))

    def _merged(self, slots: Longs, rows: pa.Table, levels: Longs) -> _Found:
        """Merge the versions of keys: return one row for each slot."""
        stored = self.files.stored
        rows = rows.append_column(ROW, pa.array(slots)).combine_chunks()
        keys = slots.astype(np.uint64)
        if stored.merge.lookup:
            rows, keys = merge_candidates(rows, keys, levels)
        merged = merge_rows(rows, keys, stored.merge)
        return merged.column(ROW).to_numpy(), merged.select([name for name in stored.value_names if name != POSITION])

    def _answer(self, slots: _Slots, found: Sequence[_Found]) -> FoundRows:
        """Return the rows that match the condition, in the order of the probes, with the requested columns."""
        spec = self.live.spec
        names = list(spec.columns)
        if not found:
            fields = [arrow_field(spec.store.schema.field(name)) for name in names]
            return FoundRows(np.empty(0, np.int64), pa.schema(fields).empty_table())
        numbers = np.concatenate([own for own, _ in found])
        rows = pa.concat_tables([table for _, table in found])
        probes = slots.owners[numbers]
        if len(probes) > 1 and not bool((probes[1:] > probes[:-1]).all()):
            order = np.argsort(probes, kind="stable")
            numbers, probes, rows = numbers[order], probes[order], rows.combine_chunks().take(pa.array(order))
        rows = slots.with_keys(numbers, rows)
        if spec.predicate is not None:
            matches = matching(spec.predicate, rows).to_numpy(zero_copy_only=False)
            if not matches.all():
                probes, rows = probes[matches], rows.filter(pa.array(matches))
        return FoundRows(probes, rows.select(names))
