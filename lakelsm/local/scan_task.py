"""The task of a local read: the rows of one file, or of one merge unit, in the form for users.

If merged rows are rows of files (`deduplicate`, `first-row`), a unit is not merged whole: its deciding columns are merged
first, which gives the hidden rows, and then the files are scanned one after the other, as files without overlap are, less
these rows. So only few columns are decoded twice, and none is sorted. Other engines merge whole rows, and so does a read
in key order.

A condition is applied after the merge, never before it. Row groups whose statistics exclude it are skipped. After a row
group without a matching row, only the condition's columns of the next one are decoded first.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lakelsm.format.data_file.key_value_file import GroupBounds, KeyValueReader
from lakelsm.format.data_file.vector_location import positions_within, read_vectors
from lakelsm.local.output_rows import output_rows
from lakelsm.merge.grouped_rows import Mask
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.predicate.evaluation import matching
from lakelsm.predicate.predicate import Predicate, columns
from lakelsm.predicate.statistics import ColumnBounds, StatsTable, may_match, must_match
from lakelsm.read.hidden_row_task import HiddenRowTask
from lakelsm.read.merged_rows import EVERY_FILE, MergedRows
from lakelsm.schema.system_columns import FILE_NUMBER, POSITION
from lakelsm.types import to_arrow

#: A batch of a scan may have this share of a task's memory: it exists in several forms, and results wait.
_SCAN_SHARE = 16


@dataclass(frozen=True)
class LivePart:
    """The rows of a file with indexes from ``first`` up to ``stop``, less the ``hidden`` ones."""

    file: RunFile
    first: int
    stop: int
    hidden: BitMap = field(default_factory=BitMap)


@dataclass(frozen=True)
class ScanTask:
    """Yields the rows of one unit of a read; ``schema`` is the schema for users.

    ``hidden_rows`` finds the rows that merges hide. ``reader`` has the columns of the schema and the ``predicate``, and
    those that the merge of an engine that combines rows needs. ``ordered``: a unit's rows are in key order.
    """

    reader: RunReader
    _: KW_ONLY
    hidden_rows: HiddenRowTask
    spec: MergeSpec
    schema: pa.Schema
    predicate: Predicate | None = None
    ordered: bool = False

    @property
    def memory_bytes(self) -> int:
        """The maximum memory of one unit, in bytes."""
        return self.reader.memory_bytes

    def __call__(self, unit: RunFile | MergeUnit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a unit that match."""
        if isinstance(unit, RunFile):
            yield from self._scanned(LivePart(unit, 0, unit.row_count))
        elif self.spec.keeps_rows and not self.ordered:
            for part in self._live_parts(unit):
                yield from self._scanned(part)
        else:
            schema = self.reader.schema
            stored = pa.schema([(name, to_arrow(schema.field(name).type)) for name in self.reader.columns])
            for batch in MergedRows(self.reader, self.spec, stored, EVERY_FILE)([unit]):
                rows = pa.Table.from_batches([batch])
                yield from self._user_rows(rows, self._wanted(rows, None))

    def _allowance(self) -> int:
        return self.reader.memory_bytes // _SCAN_SHARE

    def _live_parts(self, unit: MergeUnit) -> list[LivePart]:
        """Return the rows of a unit's files that its merge does not hide."""
        spans: dict[int, tuple[int, int]] = {}
        hidden: dict[int, BitMap] = {}
        for rows, mask in self.hidden_rows.hidden(unit, positions=True):
            numbers, positions = rows.column(FILE_NUMBER).to_numpy(), rows.column(POSITION).to_numpy()
            starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
            for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(numbers)]):
                number, first, last = int(numbers[start]), int(positions[start]), int(positions[stop - 1])
                spans[number] = (min(first, spans.get(number, (first, 0))[0]), last + 1)
                found = positions[start:stop][mask[start:stop]]
                if len(found):
                    hidden.setdefault(number, BitMap()).update(array("I", found.astype(np.uint32).tobytes()))
        # The merge has already compared the files with their manifest entries.
        return [
            LivePart(replace(unit.files[number], expected=None), first, stop, hidden.get(number, BitMap()))
            for number, (first, stop) in sorted(spans.items())
        ]

    def _scanned(self, part: LivePart) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of a part, from the row groups that may have some."""
        file, hidden = part.file, part.hidden
        if file.vector is not None:
            (masked,) = read_vectors(self.reader.file_io.filesystem(), [(file.vector, file.row_count)])
            hidden = hidden | masked
        opened = self.reader.open_file(file, system=False)
        probe, had_none = self._probe(file), False
        for group, matches in self._groups(opened, part):
            if probe is not None and had_none and not matches and not self._has_match(probe, group, part, hidden):
                continue
            had_none = True
            for start, rows in opened.batches(self._allowance, groups=group.__eq__):
                shown = _shown(part, hidden, start, len(rows))
                for batch in self._user_rows(rows, self._wanted(rows, shown, matches)):
                    had_none = False
                    yield batch
                del rows  # Free them before the next ones are read.

    def _probe(self, file: RunFile) -> KeyValueReader | None:
        """Return a reader of the condition's columns; None if these are all columns."""
        if self.predicate is None or not columns(self.predicate) < {*self.reader.columns}:
            return None
        return replace(self.reader, columns=tuple(columns(self.predicate))).open_file(file, system=False)

    def _has_match(self, probe: KeyValueReader, group: int, part: LivePart, hidden: BitMap) -> bool:
        """Return whether a row of a row group is visible and matches."""
        for start, rows in probe.batches(self._allowance, groups=group.__eq__):
            wanted = self._wanted(rows, _shown(part, hidden, start, len(rows)))
            if wanted is None or pc.any(wanted).as_py():
                return True
        return False

    def _groups(self, opened: KeyValueReader, part: LivePart) -> list[tuple[int, bool]]:
        """Return the row groups that may have matching rows of the part, and whether all their rows match."""
        counts = opened.group_rows()
        stops = np.cumsum([0, *counts]).tolist()
        groups = [at for at in range(len(counts)) if stops[at] < part.stop and stops[at + 1] > part.first]
        if self.predicate is None:
            return [(group, True) for group in groups]
        bounds = {name: _bounds(opened.row_group_bounds(name)) for name in columns(self.predicate)}
        stats = StatsTable(counts, bounds)
        may, must = may_match(self.predicate, stats), must_match(self.predicate, stats)
        return [(group, must[group]) for group in groups if may[group]]

    def _wanted(
        self, rows: pa.Table, shown: Mask | None, matches: bool = False
    ) -> pa.Array | pa.ChunkedArray | None:
        """Return which rows are visible and match; None for all. ``matches``: it is known that all match."""
        if self.predicate is None or matches:
            return None if shown is None else pa.array(shown)
        found = matching(self.predicate, rows)
        return found if shown is None else pc.and_(found, pa.array(shown))

    def _user_rows(self, rows: pa.Table, wanted: pa.Array | pa.ChunkedArray | None) -> Iterator[pa.RecordBatch]:
        """Yield the wanted rows in the form for users."""
        rows = rows.select(self.schema.names)
        if wanted is not None and not pc.all(wanted).as_py():
            rows = rows.filter(wanted)
        if len(rows):
            yield from output_rows(rows, self.schema).to_batches()


def _bounds(groups: Sequence[GroupBounds]) -> ColumnBounds:
    return ColumnBounds([one.low for one in groups], [one.high for one in groups], [one.nulls for one in groups])


def _shown(part: LivePart, hidden: BitMap, start: int, rows: int) -> Mask | None:
    """Return which of some rows of a file, from index ``start`` on, are in the part and not hidden; None for all."""
    found = positions_within(hidden, start, start + rows)
    if not len(found) and part.first <= start and start + rows <= part.stop:
        return None
    shown: Mask = np.zeros(rows, dtype=bool)
    shown[max(part.first - start, 0) : max(part.stop - start, 0)] = True
    if len(found):
        shown[found - start] = False
    return shown


__all__ = ["LivePart", "ScanTask"]
