"""The schema files of a table, ``schema-N``; the highest number is the newest schema (docs/format.md 3)."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import replace

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import CommitConflictError, CorruptTableError, TableAlreadyExistsError, TableNotFoundError
from lakelsm.format.file_names import SCHEMA_PREFIX, schema_id_of
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import Snapshot
from lakelsm.json_document import parse_object
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.json_file import checked_bytes, publish
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.storage import FileIO

#: The input of the checksum of a schema file: parts of the document, and options that decide which rows are read. Other
#: options decide how later files are written. Persisted: do not change
_DECIDING_KEYS = ("fields", "highestFieldId", "partitionKeys", "primaryKeys")
_DECIDING_OPTIONS = (
    "bucket", "bucket-function.type", "bucket-key", "deletion-vectors.enabled", "ignore-delete", "merge-engine",
    "partition.default-name", "partition.legacy-name", "rowkind.field", "sequence.field", "sequence.field.sort-order",
)  # fmt: skip
_DECIDING_PREFIXES = ("aggregation.", "deduplicate.", "first-row.", "partial-update.")
_DECIDING_FIELD_OPTIONS = ("aggregate-function", "default-aggregate-function", "ignore-retract", "sequence-group")

_RETRIES = 20
#: The number of ids after an existing one that are probed before the directory is listed.
_PROBES = 8
#: The maximum size of a schema file, in bytes.
_MAX_BYTES = 64 << 20
#: The remedy if it is unknown whether a schema was added.
_RERUN = "Check the table's schema, and repeat the change if it is missing."


class SchemaStore:
    """Reads and adds schema files of one table. Caches nothing."""

    def __init__(self, file_io: FileIO, paths: TablePaths, environment: Environment = SYSTEM) -> None:
        self._file_io = file_io
        self._paths = paths
        self._environment = environment

    def ids(self) -> list[int]:
        """Return the ids of all schemas, ascending; an empty list if there is no table."""
        numbers = map(schema_id_of, self._file_io.list(self._paths.schema_dir))
        return sorted(number for number in numbers if number is not None)

    def latest_id(self, known: int) -> int:
        """Return the id of the newest schema, given an existing id. Ids have no gaps, so the next ones are probed."""
        for candidate in range(known, known + _PROBES):
            if not self._file_io.exists(self._paths.schema_file(candidate + 1)):
                return candidate
        return self._listed_newest()

    def latest(self, known: int | None = None) -> TableSchema:
        """Return the newest schema. Raises TableNotFoundError if there is no schema.

        Probes the ids after ``known``, an id that existed earlier (default: the schema of the newest snapshot). If that
        schema does not exist any more, or too many follow, all schemas are listed.
        """
        try:
            newest = self._newest_from(0 if known is None else known)
        except CorruptTableError as error:
            if isinstance(error.__cause__, OSError):  # The file is unreadable: a listing shows whether the table exists.
                return self.get(self._listed_newest())
            raise
        if newest is None and known is None:
            snapshot = SnapshotManager(self._file_io, self._paths).latest()
            newest = None if snapshot is None else self._newest_from(snapshot.schema_id)
        return self.get(self._listed_newest()) if newest is None else newest

    def _newest_from(self, schema_id: int) -> TableSchema | None:
        """Return the newest schema, by probing from an id; None if it does not exist, or if too many schemas follow."""
        schema = self._try_get(schema_id)
        for _ in range(_PROBES if schema is not None else 0):
            newer = self._try_get(schema_id + 1)
            if newer is None:
                return schema
            schema, schema_id = newer, schema_id + 1
        return None

    def _listed_newest(self) -> int:
        ids = self.ids()
        if not ids:
            raise TableNotFoundError(
                f"Table {self._paths.name} does not exist: {self._paths.root} has no file schema/schema-0."
            )
        return ids[-1]

    def get(self, schema_id: int) -> TableSchema:
        """Return one schema. Raises CorruptTableError if its file is missing, damaged or has another id."""
        schema = self._try_get(schema_id)
        if schema is None:
            raise CorruptTableError(
                f"{self._paths.schema_file(schema_id)} is missing, but snapshots or data files need it. Restore the file."
            )
        return schema

    def _try_get(self, schema_id: int) -> TableSchema | None:
        path = self._paths.schema_file(schema_id)
        try:
            data = self._file_io.read(path, _MAX_BYTES)
        except FileNotFoundError:
            return None
        schema = TableSchema.from_json(data, path)
        if schema.id != schema_id:
            raise CorruptTableError(f"{path} is damaged: it contains schema {schema.id}. Restore the file.")
        return replace(schema, read_from=(schema_id, _checksum(data, path)))

    def check_newest(self, schema: TableSchema, snapshot: Snapshot | None) -> None:
        """Check the newest schema as `check_file` does, and that the schema of the snapshot exists.

        Raises CorruptTableError.
        """
        self.check_file(schema, snapshot)
        if snapshot is not None and snapshot.schema_id > schema.id:
            self.get(snapshot.schema_id)

    def check_file(self, schema: TableSchema, snapshot: Snapshot | None) -> None:
        """Compare the file of a schema with its checksum in a snapshot, if the snapshot has one.

        Raises CorruptTableError if it is another file.
        """
        known = None if snapshot is None else snapshot.checksum_of(f"{SCHEMA_PREFIX}{schema.id}")
        found = schema.file_checksum
        if snapshot is not None and known is not None and found is not None and known != found:
            raise CorruptTableError(
                f"{self._paths.schema_file(schema.id)} is not the file that snapshot {snapshot.id} was written with: its "
                f"checksum is {found:08x} instead of {known:08x}. Restore the file."
            )

    def create_table(self, schema: TableSchema) -> None:
        """Write the first schema. Raises TableAlreadyExistsError if the table has a schema."""
        if self.ids() or not self._add(schema):
            raise TableAlreadyExistsError(f"Table {self._paths.name} already exists.")

    def change(self, change: Callable[[TableSchema], TableSchema]) -> TableSchema:
        """Add the schema that ``change`` returns for the newest one, and return it.

        If another process adds a schema first, ``change`` is called again with that one. If it returns the same id,
        nothing is added. Raises CommitConflictError after 20 lost races.
        """
        for _ in range(_RETRIES):
            newest = self.latest()
            changed = change(newest)
            if changed.id == newest.id:
                return newest
            if changed.id != newest.id + 1:
                raise ValueError(f"schema {changed.id} cannot follow schema {newest.id}")
            if self._add(changed):
                return changed
        raise CommitConflictError(
            f"Table {self._paths.name}: other processes changed the schema first in {_RETRIES} attempts. Run it again."
        )

    def _add(self, schema: TableSchema) -> bool:
        """Create a schema file. Returns False if another process created it with other content."""
        path = self._paths.schema_file(schema.id)
        data = checked_bytes(schema, path, _MAX_BYTES)
        return publish(self._file_io, path, data, self._environment.sleep, _RERUN)


def _checksum(data: bytes, path: str) -> int:
    """Return the CRC-32 of the deciding parts of a schema file, in any order and form. Persisted: do not change"""
    document = parse_object(data, path)
    options = document.get("options")
    deciding = {key: options[key] for key in options if _decides_rows(key)} if isinstance(options, dict) else options
    parts = [*(document.get(key) for key in _DECIDING_KEYS), deciding]
    return zlib.crc32(json.dumps(parts, sort_keys=True).encode("ascii"))


def _decides_rows(option: str) -> bool:
    of_field = option.startswith("fields.") and option.rpartition(".")[2] in _DECIDING_FIELD_OPTIONS
    return option in _DECIDING_OPTIONS or option.startswith(_DECIDING_PREFIXES) or of_field
