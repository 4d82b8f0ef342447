"""The snapshots of a table as a stream reads them: in order, of one history, with the columns of the stream."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence

from lakelsm.errors import (
    InvalidInputError,
    SnapshotNotFoundError,
    StreamOffsetError,
    StreamSchemaChangedError,
    TableNotFoundError,
)
from lakelsm.format.snapshot import BASE_PROPERTY, Snapshot
from lakelsm.options import ChangelogProducer, TableOptions
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.stream.stream_offset import StreamOffset, StreamPhase

_LOG = logging.getLogger(__name__)
#: The maximum size of a schema file, in bytes.
_MAX_BYTES = 64 << 20
_CHOICE = (
    "Set failOnDataLoss=false (fail_on_data_loss=False) to continue with what is kept, or start a new stream; a consumer "
    "keeps the snapshots that a stream has not read."
)


class FeedHistory:
    """The snapshots of one stream. ``store`` has the columns of the stream."""

    def __init__(self, store: TableStore, *, fails_on_data_loss: bool) -> None:
        self._store = store
        self._fails_on_data_loss = fails_on_data_loss
        self._table = table_digest(store)
        self._schemas: dict[int, TableSchema] = {store.schema.id: store.schema}
        self._checked_columns = {store.schema.id}
        self._lost: set[tuple[int, str]] = set()

    # -- offsets ----------------------------------------------------------------------------------------------------

    def before_all(self, phase: StreamPhase) -> StreamOffset:
        """Return the offset before the first snapshot of a table. For ``FULL`` the first one that exists is loaded."""
        position = 0 if phase is StreamPhase.FULL else None
        return StreamOffset(self._table, 0, "", phase, position=position)

    def load(self, snapshot: Snapshot) -> StreamOffset:
        """Return the offset before the rows of a snapshot."""
        return StreamOffset(self._table, snapshot.id, snapshot.fingerprint, StreamPhase.FULL, position=0)

    def before(self, snapshot: Snapshot) -> StreamOffset:
        """Return the offset before the changes of a snapshot."""
        return StreamOffset(self._table, snapshot.id, snapshot.fingerprint, StreamPhase.CHANGES, position=0)

    def after(self, snapshot: Snapshot) -> StreamOffset:
        """Return the offset after the changes of a snapshot."""
        return StreamOffset(self._table, snapshot.id, snapshot.fingerprint, StreamPhase.CHANGES)

    def check(self, offset: StreamOffset) -> None:
        """Raise StreamOffsetError for an offset of another table, of a re-created one, or of another history."""
        if offset.table != self._table:
            raise StreamOffsetError(
                f"Table {self._store.name}: the offset of snapshot {offset.snapshot_id} is of another table, or the "
                "table was dropped and created again. Start a new stream, with a new checkpoint."
            )
        if offset.snapshot_id == 0:
            return
        found = self._store.snapshots.try_get(offset.snapshot_id)
        if found is not None:
            # A commit may publish another snapshot with the id of one that expires.
            if found.fingerprint != offset.fingerprint and not self._store.snapshots.is_expiring(found.id):
                raise self.rolled_back(offset)
            return
        newest = self._store.snapshots.latest_id() or 0
        if newest < offset.snapshot_id and self._store.snapshots.try_get(offset.snapshot_id) is None:
            raise self.rolled_back(offset)

    # -- snapshots --------------------------------------------------------------------------------------------------

    def newest(self) -> Snapshot | None:
        """Return the newest snapshot of the history."""
        return self._store.snapshots.latest()

    def loaded(self, offset: StreamOffset, consequence: str) -> Snapshot | None:
        """Return the snapshot of an offset of the full phase; None if it has expired and data loss is allowed.

        ``consequence`` is the part of the warning that says what happens then.
        """
        found = self._store.snapshots.try_get(offset.snapshot_id)
        if found is not None and found.fingerprint == offset.fingerprint:
            self.check_columns(found)
            return found
        if self._fails_on_data_loss:
            raise SnapshotNotFoundError(
                f"Table {self._store.name}: snapshot {offset.snapshot_id} has expired, whose rows the stream had not "
                f"read to the end. {_CHOICE}"
            )
        self._warn(offset.snapshot_id, consequence)
        return None

    def following(self, offset: StreamOffset) -> Iterator[tuple[Snapshot, int]]:
        """Yield the snapshots whose changes follow an offset, with the position from which each is read.

        Ends at the newest snapshot. If snapshots have expired, raises SnapshotNotFoundError, or continues at the oldest
        one that is kept if data loss is allowed.
        """
        before, position = offset, offset.position or 0
        while True:
            number = before.next_snapshot_id
            snapshot = self._store.snapshots.try_get(number) or self._after_gap(number)
            if snapshot is None:
                return
            if snapshot.id != number:
                position = 0
            elif before.is_complete and not self._follows(snapshot, before):
                return
            yield snapshot, position
            before, position = self.after(snapshot), 0

    def check_columns(self, snapshot: Snapshot) -> None:
        """Raise StreamSchemaChangedError if a snapshot was written with other columns than the stream has."""
        number, own = snapshot.schema_id, self._store.schema
        if number <= own.id or number in self._checked_columns:
            return
        other = self._schema(number)
        if _columns(other) != _columns(own):
            raise StreamSchemaChangedError(
                f"Table {self._store.name}: its columns changed in schema {number}, with which snapshot {snapshot.id} "
                "was written. Start the stream again: it continues with the new columns."
            )
        self._checked_columns.add(number)

    def producer_of(self, snapshot: Snapshot) -> ChangelogProducer:
        """Return the changelog producer of the table at the time of a snapshot."""
        if snapshot.schema_id == self._store.schema.id:
            return self._store.options.changelog_producer
        return TableOptions.parse(self._schema(snapshot.schema_id).options, for_reads=True).changelog_producer

    def oldest_from(self, number: int, fails: bool) -> Snapshot:
        """Return a committed snapshot whose changes are read; if it has expired, the oldest one that is kept.

        Raises SnapshotNotFoundError for an expired snapshot if ``fails``.
        """
        found = self._changes(number)
        if found is not None:
            return found
        oldest = self._oldest_kept()
        if oldest is None or oldest.id < number:
            return self._store.snapshots.get(number)  # Raises: it is missing between others.
        if fails:
            raise SnapshotNotFoundError(
                f"Table {self._store.name}: snapshot {number} has expired, so the stream cannot read its changes; "
                f"{oldest.id} is the oldest one that is kept. {_CHOICE}"
            )
        self._warn(number, f"the stream continues at snapshot {oldest.id}, and the changes in between are lost")
        return oldest

    def state_before(self, snapshot: Snapshot) -> Snapshot | None:
        """Return the snapshot before an overwrite, to which it is compared.

        If it has expired, raises SnapshotNotFoundError, or returns None if data loss is allowed.
        """
        found = self._store.snapshots.try_get(snapshot.id - 1)
        if found is not None or not self._fails_on_data_loss:
            return found
        raise SnapshotNotFoundError(
            f"Table {self._store.name}: snapshot {snapshot.id - 1} has expired, with which the overwrite in snapshot "
            f"{snapshot.id} is compared. {_CHOICE}"
        )

    # -- internal ---------------------------------------------------------------------------------------------------

    def _changes(self, number: int) -> Snapshot | None:
        """Return a snapshot if its changes are kept: it exists, or they outlive it."""
        store = self._store
        found = store.snapshots.try_get(number)
        if found is not None:
            return found
        found = store.changelogs.try_get(number)
        if found is not None and self.producer_of(found) is ChangelogProducer.NONE:
            kept = store.file_io.exists(store.paths.manifest(found.delta_manifest_list))
            return found if kept else None
        return found

    def _after_gap(self, number: int) -> Snapshot | None:
        """Return the snapshot that is read instead of a missing one; None if it is not committed yet."""
        snapshots = self._store.snapshots
        if (snapshots.latest_id() or 0) < number:
            return None
        return self.oldest_from(number, self._fails_on_data_loss)

    def _oldest_kept(self) -> Snapshot | None:
        """Return the oldest snapshot whose changes are kept."""
        ids = sorted({*self._store.changelogs.ids(), *self._store.snapshots.ids()})
        return next(filter(None, map(self._changes, ids)), None)

    def _follows(self, snapshot: Snapshot, before: StreamOffset) -> bool:
        """Return whether a snapshot is based on that of an offset, or false if its writer is about to remove it.

        Raises StreamOffsetError if the table was rolled back and both ids were used again.
        """
        base = snapshot.own_properties.get(BASE_PROPERTY, before.fingerprint)
        if not before.snapshot_id or base == before.fingerprint:
            return True
        if self._store.snapshots.try_get(before.snapshot_id) is None:
            raise self.rolled_back(before)
        return False

    def _schema(self, number: int) -> TableSchema:
        if number not in self._schemas:
            self._schemas[number] = self._store.schemas.get(number)
        return self._schemas[number]

    def _warn(self, number: int, consequence: str) -> None:
        if (number, consequence) not in self._lost:
            self._lost.add((number, consequence))
            _LOG.warning("Table %s: snapshot %d has expired; %s.", self._store.name, number, consequence)

    def rolled_back(self, offset: StreamOffset) -> InvalidInputError:
        """Return the error for an offset whose snapshot is not in the history of the table any more."""
        name, number = self._store.name, offset.snapshot_id
        try:
            is_same = table_digest(self._store) == self._table
        except TableNotFoundError as error:
            return error
        cause = f"snapshot {number}, up to which the stream read, was rolled back" if is_same else "it was created again"
        return StreamOffsetError(f"Table {name}: {cause}. Start a new stream, with a new checkpoint.")


def _columns(schema: TableSchema) -> Sequence[object]:
    """Return what a stream depends on: columns without their comments, and keys."""
    columns = [(field.id, field.name, field.type) for field in schema.fields]
    return [columns, schema.primary_keys, schema.partition_keys]


def table_digest(store: TableStore) -> str:
    """Return what identifies a table and its branch: another or a re-created table has another digest.

    The content of the oldest schema file has the time of the creation. Raises TableNotFoundError without a table.
    """
    ids = store.schemas.ids()
    if not ids:
        raise TableNotFoundError(f"Table {store.name} does not exist: {store.paths.root} has no file schema/schema-0.")
    data = store.file_io.read(store.paths.schema_file(ids[0]), _MAX_BYTES)
    return hashlib.sha256(data + b"\0" + store.paths.branch.encode()).hexdigest()[:32]
