"""Opens data files in rounds of tasks, and collects their findings and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow.compute as pc

from lakelsm.format.file_names import other_format
from lakelsm.format.manifest import ManifestEntry
from lakelsm.maintain.check.audit_plan import CheckedData, plan_audit, plan_changelog_audit
from lakelsm.maintain.check.file_audit import AUDIT_SCHEMA, AuditedBucket, AuditedFile, FileAudit
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.key_audit import HashAudit, KeyAudit
from lakelsm.maintain.check.rules import DATA_FILE_FORMAT, RULES
from lakelsm.merge.merge_unit import MergeUnit
from lakelsm.merge.run_reader import RunReader
from lakelsm.read.stored_rows import TASK_MEMORY
from lakelsm.runner.runner import Runner, Task, Unit
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.deletion_vectors import DeletionVectors
from lakelsm.snapshots.hash_indexes import HashIndexes
from lakelsm.snapshots.table_store import TableStore

#: Tasks of each core between two checks of the deadline.
_TASKS_A_ROUND = 4


class DataAudit:
    """Opens the live data files of one state after another. A file of several states is opened once.

    Before each round it calls ``has_time``, and stops if that returns False. ``counts`` has the totals of `AUDIT_SCHEMA`.
    """

    def __init__(
        self, runner: Runner, findings: Findings, data: CheckedData, *, chance: float, has_time: Callable[[], bool]
    ) -> None:
        self._runner = runner
        self._findings = findings
        self._data = data
        self._chance = chance
        self._has_time = has_time
        self._opened: set[str] = set()
        self._vectors: set[tuple[str, int, int]] = set()
        self.counts: Counter[str] = Counter()

    def audit(
        self,
        store: TableStore,
        entries: Sequence[ManifestEntry],
        schemas: Mapping[int, TableSchema],
        *,
        vectors: DeletionVectors | None,
        indexes: HashIndexes,
        owner: str,
    ) -> None:
        """Open the files of the state of ``owner``, except those with a known fault.

        Without readable ``vectors``, keys are not checked: it is unknown whether a key occurs twice.
        """
        if self._data is CheckedData.NONE:
            return
        known = DeletionVectors() if vectors is None else vectors
        readable = self._readable(store, entries, owner)
        plan = plan_audit(store, readable, known, indexes, data=self._data, chance=self._chance)
        files = [buckets for part in plan.files if (buckets := [b for bucket in part if (b := self._new(bucket)).files])]
        self._run(store, owner, files, FileAudit.of(store, schemas))
        if vectors is not None:
            keys = tuple(store.schema.trimmed_primary_keys)
            reader = RunReader(store.file_io, store.schema, schemas=schemas, columns=keys, memory_bytes=TASK_MEMORY)
            units = [sound for part in plan.keys if (sound := [unit for unit in part if self._is_sound(unit)])]
            self._run(store, owner, units, KeyAudit(reader))
        hashes = [part for part in plan.hashes if not any(self._findings.has_fault(index.path) for index in part)]
        self._run(store, owner, hashes, HashAudit(store.file_io))

    def audit_changelog(
        self, store: TableStore, entries: Sequence[ManifestEntry], schemas: Mapping[int, TableSchema], owner: str
    ) -> None:
        """Open changelog files, if the check reads all data."""
        if self._data is CheckedData.FULL:
            readable = [entry for entry in self._readable(store, entries, owner) if entry.file.schema_id in schemas]
            self._run(store, owner, plan_changelog_audit(store, readable), FileAudit.of(store, schemas))

    def _readable(self, store: TableStore, entries: Sequence[ManifestEntry], owner: str) -> list[ManifestEntry]:
        """Return the entries whose files can be opened: Parquet files without a known fault.

        All files of other formats are one finding.
        """
        others = [entry for entry in entries if other_format(entry.file.file_name) is not None]
        if others:
            formats = sorted({other_format(entry.file.file_name) or "" for entry in others})
            problem = f"it is one of {len(others)} files in other formats ({', '.join(formats)}), which were not opened"
            self._findings.add(DATA_FILE_FORMAT, _path(store, others[0]), problem, owner)
        return [
            entry
            for entry in entries
            if other_format(entry.file.file_name) is None and not self._findings.has_fault(_path(store, entry))
        ]

    def _new(self, bucket: AuditedBucket) -> AuditedBucket:
        """Return the part of a bucket that was not opened before: files, and vectors, which another state may replace.

        Vectors and HASH indexes with a known fault are left out.
        """
        index = bucket.hash_index
        is_faulty = index is not None and self._findings.has_fault(index.path)
        files: list[AuditedFile] = []
        for audited in bucket.files:
            file, vector = audited.file, audited.file.vector
            if vector is not None and (vector.byte_range in self._vectors or self._findings.has_fault(vector.index_path)):
                file = replace(file, vector=None)
            if file.path in self._opened and file.vector is None:
                continue
            files.append(replace(audited, file=file, in_full=audited.in_full and file.path not in self._opened))
            self._opened.add(file.path)
            if file.vector is not None:
                self._vectors.add(file.vector.byte_range)
        return AuditedBucket(files=tuple(files), hash_index=None if is_faulty else index)

    def _is_sound(self, unit: MergeUnit) -> bool:
        """Return whether the files of a unit and their vectors have no known fault."""
        indexes = {file.vector.index_path for file in unit.files if file.vector is not None}
        return not any(map(self._findings.has_fault, (*indexes, *(file.path for file in unit.files))))

    def _run(self, store: TableStore, owner: str, work: Sequence[Unit], task: Task[Unit]) -> None:
        round_size = self._runner.cores * _TASKS_A_ROUND
        for start in range(0, len(work), round_size):
            if not self._has_time():
                return
            for batch in self._runner.batches(work[start : start + round_size], task, AUDIT_SCHEMA, store.paths):
                for name in ("files_opened", "files_read", "rows_read"):
                    self.counts[name] += pc.sum(batch.column(name)).as_py() or 0
                for found in batch.filter(batch.column("rule").is_valid()).to_pylist():
                    self._findings.add(RULES[found["rule"]], found["thing"], found["problem"], owner)


def _path(store: TableStore, entry: ManifestEntry) -> str:
    return store.data_path(entry.partition, entry.bucket, entry.file.file_name)
