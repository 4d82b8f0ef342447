"""Converts planned sections to the units that tasks merge: files with paths, split by key if a section is large."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from lakelsm.format.data_file.file_check import ExpectedFile
from lakelsm.format.data_file.file_index_location import FileIndexLocation
from lakelsm.format.data_file.key_value_file import key_types
from lakelsm.format.data_file.vector_location import VectorLocation
from lakelsm.format.file_names import refuse_external_path, refuse_other_format
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.row.binary_row import decode_row
from lakelsm.lsm.interval_partition import Section
from lakelsm.lsm.levels import FileRange, SortedRun
from lakelsm.lsm.splits import pack_in_order
from lakelsm.merge.merge_unit import LOOK_UP_COST, MergeUnit, RunFile
from lakelsm.options import TableOptions
from lakelsm.options.file_index_options import BLOOM_FILTER
from lakelsm.plan.bucket_files import BucketId
from lakelsm.snapshots.table_store import TableStore

Work = TypeVar("Work")


def pack_for_tasks(
    options: TableOptions, work: Iterable[Work], files: Callable[[Work], Iterable[RunFile]]
) -> list[list[Work]]:
    """Divide the work of a read into tasks, in order: about ``source.split.target-size`` bytes of files for each.

    A file counts at least ``source.split.open-file-cost`` bytes.
    """
    min_size = options.source_split_open_file_cost
    return pack_in_order(
        work, lambda item: sum(max(file.file_size, min_size) for file in files(item)), options.source_split_target_size
    )


class MergeUnits:
    """Makes the units of one plan, whose planned files are indexes into ``entries``.

    ``vectors`` has the deletion vector of each entry's file; it is empty if no file has one.
    """

    def __init__(
        self, store: TableStore, entries: Sequence[ManifestEntry], vectors: Sequence[VectorLocation | None] = ()
    ) -> None:
        self._store = store
        self._entries = entries
        self._vectors = vectors
        self._directories: dict[BucketId, str] = {}
        self._key_types = key_types(store.schema)
        keys = store.schema.trimmed_primary_keys
        filtered = any(index.kind == BLOOM_FILTER and index.column in keys for index in store.options.file_indexes)
        self._has_key_filters = filtered and store.options.file_index_read_enabled

    def directory(self, partition: bytes, bucket: int) -> str:
        """Return the directory of a bucket's files."""
        directory = self._directories.get((partition, bucket))
        if directory is None:
            directory = self._store.paths.bucket_dir(self._store.partition_text(partition), bucket)
            self._store.file_io.check_directory(directory)
            self._directories[(partition, bucket)] = directory
        return directory

    def file(self, planned: FileRange) -> RunFile:
        """Return a planned file in the form that tasks read."""
        return self.file_of(self._entries[planned.index], self._vectors[planned.index] if self._vectors else None)

    def file_of(self, entry: ManifestEntry, vector: VectorLocation | None = None) -> RunFile:
        """Return the file of an entry in the form that tasks read.

        Raises the errors of `FileIO.check_file`, because Spark would follow any link, and UnsupportedFeatureError for a
        file outside of the table's directory or in another format than Parquet.
        """
        file = entry.file
        refuse_external_path(file.external_path, file.file_name)
        path = f"{self.directory(entry.partition, entry.bucket)}/{file.file_name}"
        refuse_other_format(file.file_name, path)
        self._store.file_io.check_file(path)
        expected = ExpectedFile.of(file, entry.partition)
        return RunFile(
            path,
            schema_id=file.schema_id,
            row_count=file.row_count,
            file_size=file.file_size,
            level=file.level,
            expected=expected,
            vector=vector,
            extra_files=file.extra_files,
        )

    def of_section(self, section: Section, target_size: int, below: Sequence[SortedRun] = ()) -> list[MergeUnit]:
        """Return a section as units of disjoint key ranges, in key order, of at least about ``target_size`` bytes each.

        The section is cut where files of the largest run begin, so that memory and time of a task do not depend on the
        size of the bucket. Files of the other runs are in every unit whose range they overlap. ``below`` are the runs,
        lowest level first, in which the units look keys up.
        """
        runs = sorted(section.runs, key=lambda run: max(file.max_seq for file in run))
        cuts = _cuts(runs, [run.files for run in below], target_size)
        units: list[MergeUnit] = []
        for low, high in zip([None, *cuts], [*cuts, None]):
            inside = [_within(run, low, high) for run in runs]
            files = [file for run in inside for file in run]
            if not files:
                continue
            first, last = min(files, key=lambda file: file.min_key), max(files, key=lambda file: file.max_key)
            looked_up = [
                tuple(file for file in run if file.max_key >= first.min_key and file.min_key <= last.max_key)
                for run in (_within(run.files, low, high) for run in reversed(below))
            ]
            units.append(
                MergeUnit(
                    self._runs(inside),
                    lower=self._key(low),
                    upper=self._key(high),
                    looked_up=tuple(tuple(map(self._looked_up, run)) for run in looked_up if run),
                    reach=self._reach(first, last) if any(looked_up) else None,
                    has_only_adds=all(file.delete_rows == 0 for file in files),
                    is_newest_last=_is_newest_last([run for run in inside if run]),
                )
            )
        return units

    def _looked_up(self, planned: FileRange) -> RunFile:
        """Return a planned file for key look-ups, with its indexes if the table has bloom filters on key columns."""
        file = self.file(planned)
        if not self._has_key_filters:
            return file
        entry = self._entries[planned.index]
        index = FileIndexLocation.of(entry.file, self.directory(entry.partition, entry.bucket))
        if index is not None and index.path is not None:
            self._store.file_io.check_file(index.path)
        return replace(file, index=index)

    def _runs(self, runs: Sequence[tuple[FileRange, ...]]) -> tuple[tuple[RunFile, ...], ...]:
        return tuple(tuple(map(self.file, run)) for run in runs if run)

    def _key(self, file: FileRange | None) -> tuple[object, ...] | None:
        return None if file is None else self._row_key(self._entries[file.index].file.min_key)

    def _reach(self, first: FileRange, last: FileRange) -> tuple[tuple[object, ...], tuple[object, ...]]:
        entries = self._entries
        return self._row_key(entries[first.index].file.min_key), self._row_key(entries[last.index].file.max_key)

    def _row_key(self, row: bytes) -> tuple[object, ...]:
        return decode_row(row, self._key_types)


def _within(run: Sequence[FileRange], low: FileRange | None, high: FileRange | None) -> tuple[FileRange, ...]:
    """Return the files of a run that overlap the keys from the smallest of ``low`` to that of ``high``, exclusive."""
    return tuple(
        file
        for file in run
        if (low is None or file.max_key >= low.min_key) and (high is None or file.min_key < high.min_key)
    )


def _is_newest_last(runs: Sequence[Sequence[FileRange]]) -> bool:
    """Return whether all sequence numbers of each run are larger than those of the run before."""
    return all(
        max(file.max_seq for file in older) < min(file.min_seq for file in newer) for older, newer in pairwise(runs)
    )


def _cuts(
    runs: Sequence[Sequence[FileRange]], below: Sequence[Sequence[FileRange]], target_size: int
) -> list[FileRange]:
    """Return the files of the largest run whose smallest key starts a new unit."""
    min_key, max_key = min(run[0].min_key for run in runs), max(run[-1].max_key for run in runs)
    touched = [[file for file in run if file.max_key >= min_key and file.min_key <= max_key] for run in below]
    costs = [(run, float(sum(file.size for file in run))) for run in runs]
    costs += [(run, sum(file.size for file in run) * LOOK_UP_COST) for run in touched]
    largest, _ = max(costs, key=lambda pair: pair[1])
    share = sum(cost for _, cost in costs) / max(sum(file.size for file in largest), 1)
    cuts: list[FileRange] = []
    filled = 0.0
    for file in largest:
        if filled >= target_size:
            cuts.append(file)
            filled = 0.0
        filled += file.size * share
    return cuts
