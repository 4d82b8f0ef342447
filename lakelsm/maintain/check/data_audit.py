"""Opens data files in tasks of a runner, round by round, and collects the results."""

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

#: Tasks of a core between two looks at the clock.
_TASKS_A_ROUND = 4


class DataAudit:
    """Opens live data files of one state after another; a file that several states have is opened once.

    ``proceed``, called before each round, returns whether time is left. ``counts`` has the numbers of `AUDIT_SCHEMA`.
    """

    def __init__(
        self, runner: Runner, findings: Findings, data: CheckedData, *, chance: float, proceed: Callable[[], bool]
    ) -> None:
        self._runner = runner
        self._findings = findings
        self._data = data
        self._chance = chance
        self._proceed = proceed
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
        """Open files of a state of ``owner``, those without a known fault.

        Without readable ``vectors`` it is unknown whether a key occurs twice.
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
        hashes = [part for part in plan.hashes if not any(self._findings.tell_of(index.path) for index in part)]
        self._run(store, owner, hashes, HashAudit(store.file_io))

    def audit_changelog(
        self, store: TableStore, entries: Sequence[ManifestEntry], schemas: Mapping[int, TableSchema], owner: str
    ) -> None:
        """Open changelog files, where all data are read."""
        if self._data is CheckedData.FULL:
            readable = [entry for entry in self._readable(store, entries, owner) if entry.file.schema_id in schemas]
            self._run(store, owner, plan_changelog_audit(store, readable), FileAudit.of(store, schemas))

    def _readable(self, store: TableStore, entries: Sequence[ManifestEntry], owner: str) -> list[ManifestEntry]:
        """The entries whose files can be opened: nothing wrong is known of them, and they are Parquet files.

        The files of other formats are one finding.
        """
        others = [entry for entry in entries if other_format(entry.file.file_name) is not None]
        if others:
            formats = sorted({other_format(entry.file.file_name) or "" for entry in others})
            problem = f"it is one of {len(others)} of other formats ({', '.join(formats)}), which were not opened"
            self._findings.add(DATA_FILE_FORMAT, _path(store, others[0]), problem, owner)
        return [
            entry
            for entry in entries
            if other_format(entry.file.file_name) is None and not self._findings.tell_of(_path(store, entry))
        ]

    def _new(self, bucket: AuditedBucket) -> AuditedBucket:
        """What of a bucket has not been opened: files, and vectors, of which a file may have others in another state.

        Vectors and HASH indexes are left out of which it is known that something is wrong with them.
        """
        index = bucket.hash_index
        told = index is not None and self._findings.tell_of(index.path)
        files: list[AuditedFile] = []
        for audited in bucket.files:
            file, vector = audited.file, audited.file.vector
            if vector is not None and (vector.byte_range in self._vectors or self._findings.tell_of(vector.index_path)):
                file = replace(file, vector=None)
            if file.path in self._opened and file.vector is None:
                continue
            files.append(replace(audited, file=file, in_full=audited.in_full and file.path not in self._opened))
            self._opened.add(file.path)
            if file.vector is not None:
                self._vectors.add(file.vector.byte_range)
        return AuditedBucket(files=tuple(files), hash_index=None if told else index)

    def _is_sound(self, unit: MergeUnit) -> bool:
        """Whether nothing is known to be wrong with the files of a unit and their vectors."""
        places = {file.vector.index_path for file in unit.files if file.vector is not None}
        return not any(map(self._findings.tell_of, (*places, *(file.path for file in unit.files))))

    def _run(self, store: TableStore, owner: str, work: Sequence[Unit], task: Task[Unit]) -> None:
        a_round = self._runner.cores * _TASKS_A_ROUND
        for start in range(0, len(work), a_round):
            if not self._proceed():
                return
            for batch in self._runner.batches(work[start : start + a_round], task, AUDIT_SCHEMA, store.paths):
                for name in ("files_opened", "files_read", "rows_read"):
                    self.counts[name] += pc.sum(batch.column(name)).as_py() or 0
                for found in batch.filter(batch.column("rule").is_valid()).to_pylist():
                    self._findings.add(RULES[found["rule"]], found["thing"], found["problem"], owner)


def _path(store: TableStore, entry: ManifestEntry) -> str:
    return store.data_path(entry.partition, entry.bucket, entry.file.file_name)
