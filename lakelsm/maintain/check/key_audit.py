"""The tasks that compare keys of several files: duplicate rows of a key above level 0, and duplicate hashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakelsm.errors import LakelsmError
from lakelsm.maintain.check.file_audit import AuditReport
from lakelsm.maintain.check.rules import DATA_FILE_UNREADABLE, HASH_INDEX_TWICE, HASH_INDEX_UNREADABLE, KEY_TWICE
from lakelsm.merge.kernel import contested
from lakelsm.merge.merge_unit import MergeUnit
from lakelsm.merge.run_reader import RunReader
from lakelsm.merge.streaming import key_ranges
from lakelsm.schema.system_columns import FILE_NUMBER
from lakelsm.snapshots.hash_indexes import HashIndex
from lakelsm.storage import FileIO


@dataclass(frozen=True)
class KeyAudit:
    """The task that finds keys with unmasked rows in several files of a unit."""

    reader: RunReader

    @property
    def memory_bytes(self) -> int:
        """The maximum memory of a unit, in bytes."""
        return self.reader.memory_bytes

    def __call__(self, units: Sequence[MergeUnit]) -> Iterator[pa.RecordBatch]:
        """Yield findings as rows of `AUDIT_SCHEMA`, at most one for each file."""
        report = AuditReport()
        for unit in units:
            try:
                self._audit(unit, report)
            except LakelsmError as error:
                report.add(DATA_FILE_UNREADABLE, unit.files[0].path, str(error))
        yield report.batch()

    def _audit(self, unit: MergeUnit, report: AuditReport) -> None:
        reported: set[int] = set()
        keys = self.reader.schema.trimmed_primary_keys
        for rows, order in key_ranges(self.reader.open_runs(unit, positions=True, system=False), keys):
            if order is None:
                continue
            several = contested(order)
            files = rows.column(FILE_NUMBER).to_numpy()[several]
            for number in np.unique(files).tolist()[:1]:
                if number not in reported:
                    reported.add(number)
                    others = {unit.files[other].name for other in np.unique(files).tolist()} - {unit.files[number].name}
                    problem = f"rows of {len(files) // 2} or more of its keys are also in {', '.join(sorted(others))}"
                    report.add(KEY_TWICE, unit.files[number].path, problem)


@dataclass(frozen=True)
class HashAudit:
    """The task that reads all HASH indexes of a partition. They take 4 bytes for each key."""

    file_io: FileIO

    def __call__(self, indexes: Sequence[HashIndex]) -> Iterator[pa.RecordBatch]:
        """Yield findings as rows of `AUDIT_SCHEMA`."""
        report = AuditReport()
        found = []
        for index in indexes:
            try:
                found.append(index.read(self.file_io))
            except LakelsmError as error:
                report.add(HASH_INDEX_UNREADABLE, index.path, str(error))
        hashes = np.concatenate(found) if found else np.empty(0, np.int32)
        twice = len(hashes) - len(np.unique(hashes))
        if twice and len(found) == len(indexes):
            names = ", ".join(index.path.rsplit("/", 1)[-1] for index in indexes)
            problem = f"{twice} hashes occur more than once, in it or in the other indexes of the partition ({names})"
            report.add(HASH_INDEX_TWICE, indexes[0].path, problem)
        yield report.batch()
