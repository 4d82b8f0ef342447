"""The task that merges the files of a rewrite unit and writes them to the output level, with their changelog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, starmap
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pyarrow.fs import LocalFileSystem

from lakelsm.environment import SYSTEM, Environment
from lakelsm.format.data_file.key_value_file import FileLayout
from lakelsm.format.data_file.rolling_writer import RollingWriter
from lakelsm.format.file_names import AttemptNames, FileNames
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.manifest.data_file_meta import DataFileMeta, FileSource
from lakelsm.format.row_kinds import is_retract
from lakelsm.merge.changelog import ChangelogRule, ChangelogSource, MergedRange, merge_to_top, merge_with_lookup
from lakelsm.merge.kernel import rows_at, surviving_rows
from lakelsm.merge.key_order import OrderKeys
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.record_expiry import RecordExpiry
from lakelsm.merge.replaced_rows import ReplacedRows
from lakelsm.merge.run_reader import RunReader
from lakelsm.merge.streaming import key_ranges, merge_runs, without_retractions
from lakelsm.plan.rewrite_units import RewriteUnit
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.schema.system_columns import FILE_NUMBER, POSITION, VALUE_KIND

#: The maximum number of runs in one merge.
_FAN_IN = 64


@dataclass(frozen=True, kw_only=True)
class RewriteTask:
    """The task of all rewrite units of a table; pickled once.

    Rows that have expired at ``epoch_millis`` by the rule ``expiry`` are left out before the merge, as in Paimon.
    ``rule`` decides the changelog of units that have one, ``changelog_layout`` the form of its files (None: as the data
    files).
    """

    reader: RunReader
    layout: FileLayout
    spec: MergeSpec
    expiry: RecordExpiry | None = None
    epoch_millis: int = 0
    rule: ChangelogRule | None = None
    changelog_layout: FileLayout | None = None
    names: AttemptNames
    environment: Environment = SYSTEM

    def __call__(self, unit: RewriteUnit) -> Iterator[pa.RecordBatch]:
        """Merge and write one unit. Yields its message: ADD entries of the new files, and row indexes to mask."""
        file_io, level = self.reader.file_io, unit.output_level
        writer_of = partial(
            RollingWriter,
            file_io.filesystem(),
            unit.directory,
            FileNames(self.names.uuid()),
            make_directory=partial(file_io.mkdirs, durable=False),
            make_durable=file_io.make_durable if self.layout.durable else None,
            environment=self.environment,
        )
        data = writer_of(self.layout, level=level, file_source=FileSource.COMPACT)
        changelog_layout = self.changelog_layout or self.layout
        changelog = writer_of(changelog_layout, level=level, file_source=FileSource.APPEND)
        looked_up = {file.path: file for section in unit.sections for run in section.looked_up for file in run}
        replaced = ReplacedRows(self._keys, list(looked_up.values()) if unit.masks else [])
        try:
            with ExitStack() as scratch:
                for section in unit.sections:
                    for merged in self._merged(unit, self._narrowed(unit, section, scratch), replaced):
                        if unit.writes_data:
                            data.write(merged.rows)
                        if merged.changes is not None:
                            changelog.write(merged.changes)
            entries, changes = unit_entries(unit, data.close()), unit_entries(unit, changelog.close())
            positions = replaced.positions()
            found = {(unit.partition, unit.bucket): positions} if positions else {}
            yield TaskMessages(entries, changelog_entries=changes, positions=found).to_batch()
        except BaseException:
            data.abort()
            changelog.abort()
            raise

    @property
    def memory_bytes(self) -> int:
        """The memory of a unit in bytes: one half for the batches of its runs, the other for the merged rows."""
        return 2 * self.reader.memory_bytes

    @property
    def _keys(self) -> RunReader:
        """A reader of the key columns, with half of the memory."""
        return replace(self.reader, columns=self.spec.key_columns, memory_bytes=self.reader.memory_bytes // 2)

    def _merged(self, unit: RewriteUnit, section: MergeUnit, replaced: ReplacedRows) -> Iterator[MergedRange]:
        """Return the merged rows of a section, one key range at a time, without retractions that the output drops."""
        if unit.masks and not unit.looks_up:
            return self._merged_masking(unit, replace(section, looked_up=()), replaced)
        if not unit.looks_up and not unit.changelog and not self.spec.lookup:
            rows = merge_runs(self._open(section), self.spec, unit.drop_delete)
            return (MergedRange(table, None) for table in rows)
        ranges = self._ranges(section)
        # A loop would keep a range in memory while the next one is read.
        return starmap(partial(self._merge_range, unit, section, replaced), ranges)

    def _merged_masking(self, unit: RewriteUnit, section: MergeUnit, replaced: ReplacedRows) -> Iterator[MergedRange]:
        """Yield the newest rows of a section. Those of level 0 mask the rows of their keys in the levels below."""
        if not unit.writes_data:
            for rows in chain.from_iterable(self._keys.open_runs(section)):
                replaced.add_keys(rows)
            return
        # A loop would keep a range in memory while the next one is read.
        yield from starmap(partial(self._take_newest, unit, section, replaced), self._ranges(section))

    def _take_newest(
        self, unit: RewriteUnit, section: MergeUnit, replaced: ReplacedRows, rows: pa.Table, keys: OrderKeys | None
    ) -> MergedRange:
        fresh = section.levels[rows.column(FILE_NUMBER).to_numpy()] == 0
        winners = np.arange(len(rows)) if keys is None else surviving_rows(rows, keys, self.spec)
        rows = rows.drop_columns([FILE_NUMBER, POSITION])
        replaced.add_keys(rows_at(rows.select(self.spec.key_columns), winners[fresh[winners]]))
        if unit.drop_delete:
            winners = winners[~is_retract(rows.column(VALUE_KIND))[winners]]
        return MergedRange(rows if keys is None and len(winners) == len(rows) else rows_at(rows, winners), None)

    def _ranges(self, section: MergeUnit) -> Iterator[tuple[pa.Table, OrderKeys | None]]:
        return key_ranges(self._open(section, positions=True), self.spec.key_columns)

    def _merge_range(
        self, unit: RewriteUnit, section: MergeUnit, replaced: ReplacedRows, rows: pa.Table, keys: OrderKeys | None
    ) -> MergedRange:
        levels = section.levels[rows.column(FILE_NUMBER).to_numpy()]
        rule = self.rule if unit.changelog else None
        if rule is not None and rule.source is ChangelogSource.TOP_LEVEL:
            merged = merge_to_top(rows, keys, levels, unit.output_level, self.spec, rule)
        else:
            expired = None if self.expiry is None else self.expiry.expired(rows, self.epoch_millis)
            merged = merge_with_lookup(
                rows, keys, levels, unit.output_level, self.spec, rule, unit.writes_data, expired
            )
            if unit.masks and merged.replaced is not None:
                positions = rows.select([FILE_NUMBER, POSITION]).take(pa.array(merged.replaced))
                replaced.add_positions([file.name for file in section.files], positions)
        return replace(merged, rows=without_retractions(merged.rows)) if unit.drop_delete else merged

    def _open(self, section: MergeUnit, positions: bool = False) -> list[Iterator[pa.Table]]:
        runs = self.reader.open_runs(section, positions)
        if self.expiry is None:
            return runs
        unexpired = partial(self.expiry.unexpired, now_millis=self.epoch_millis)
        below = len(section.looked_up)  # Expired rows of these runs are replaced, so the merge must see them.
        return [*runs[:below], *(map(unexpired, run) for run in runs[below:])]

    def _narrowed(self, unit: RewriteUnit, section: MergeUnit, scratch: ExitStack) -> MergeUnit:
        """Return a section of at most about `_FAN_IN` runs with the same merged rows.

        Its oldest runs are merged to scratch files first, because a task keeps a batch of each run in memory. The files
        exist until ``scratch`` closes. If the merge depends on levels, only runs of level 0 are merged in this way.
        """
        by_level = unit.looks_up or unit.masks or unit.changelog or self.spec.lookup
        while len(section.runs) > _FAN_IN:
            upper = [run for run in section.runs if by_level and run[0].level > 0]
            rest = [run for run in section.runs if run not in upper]
            oldest = replace(section, runs=tuple(rest[:_FAN_IN]), looked_up=())
            if len(oldest.runs) < 2:
                break
            directory = scratch.enter_context(TemporaryDirectory(prefix="lakelsm-merge-"))
            names = FileNames(self.names.uuid())
            writer = RollingWriter(
                LocalFileSystem(), directory, names, self.layout, level=0, file_source=FileSource.COMPACT
            )
            for rows in merge_runs(self._open(oldest), self.spec, drop_deletes=False):
                writer.write(rows)
            merged = tuple(
                RunFile(
                    f"{directory}/{meta.file_name}",
                    schema_id=meta.schema_id,
                    row_count=meta.row_count,
                    file_size=meta.file_size,
                    local=True,
                )
                for meta in writer.close()
            )
            section = replace(section, runs=(*upper, *([merged] if merged else []), *rest[_FAN_IN:]))
        return section


def unit_entries(unit: RewriteUnit, files: Sequence[DataFileMeta]) -> list[ManifestEntry]:
    """Return the ADD entries of new files of the unit's bucket."""
    return [ManifestEntry(FileKind.ADD, unit.partition, unit.bucket, unit.total_buckets, file=meta) for meta in files]
