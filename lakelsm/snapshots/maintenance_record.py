"""Records of maintenance runs, in a property of the snapshots that the runs publish (docs/format.md 18.4).

Each snapshot inherits the newest records of its predecessor, so that they outlive their snapshots. They are for display
only: a damaged record is ignored and does not make a commit fail.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.inheritance import inherited_property

#: Key of the snapshot property. Persisted: do not change
MAINTENANCE_PROPERTY = "lakelsm.maintenance"

#: Limits of a snapshot (records, characters of all records) and of a record (snapshot ids, characters of a text).
_MAX_RECORDS, _MAX_CHARACTERS, _MAX_IDS, _MAX_TEXT = 100, 8192, 8, 64

#: The outcomes. ``PARTIAL``: a commit of a run that was not its last.
DONE, PARTIAL, FAILED = "done", "partial", "failed"


@dataclass(frozen=True, kw_only=True)
class MaintenanceRecord:
    """The record of one run: its id, operation, user and host; ``started`` is in epoch milliseconds.

    ``files`` and ``bytes`` count the written files, or the deleted ones of a run that writes none. ``snapshot_ids`` are
    its newest snapshots.
    """

    run: str
    operation: str
    user: str
    host: str
    started: int
    seconds: float
    files: int = 0
    bytes: int = 0
    outcome: str = DONE
    snapshot_ids: tuple[int, ...] = ()

    def to_list(self) -> list[object]:
        """Return the stored form of the record, a list of its values."""
        texts = [text[:_MAX_TEXT] for text in (self.run, self.operation, self.user, self.host)]
        numbers = [self.started, round(self.seconds, 3), self.files, self.bytes]
        return [*texts, *numbers, self.outcome[:_MAX_TEXT], list(self.snapshot_ids)]

    @staticmethod
    def of_list(values: object) -> MaintenanceRecord | None:
        """Return the record of a stored list; None if the list is not a record."""
        if not isinstance(values, list) or len(values) != len(_KINDS):
            return None
        if not all(isinstance(value, kind) for value, kind in zip(values, _KINDS)):
            return None
        *plain, ids = values
        if not all(isinstance(number, int) for number in ids):
            return None
        return MaintenanceRecord(**dict(zip(_NAMES, plain)), snapshot_ids=tuple(ids))

    def as_property(self) -> dict[str, str]:
        """Return the property of a snapshot that the run publishes. The commit adds the snapshot's id."""
        return {MAINTENANCE_PROPERTY: _dumped([self])}


_NAMES = ("run", "operation", "user", "host", "started", "seconds", "files", "bytes", "outcome")
_KINDS: tuple[type | tuple[type, ...], ...] = (str, str, str, str, int, (int, float), int, int, str, list)


def records_of(text: str | bytes | None) -> list[MaintenanceRecord]:
    """Return the records of a property or file, newest first, without invalid ones."""
    try:
        values = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return []
    found = map(MaintenanceRecord.of_list, values if isinstance(values, list) else [])
    return [record for record in found if record is not None]


def with_maintenance_records(
    properties: Mapping[str, str], snapshot_id: int, latest: Snapshot | None, older: Callable[[int], Snapshot | None]
) -> dict[str, str]:
    """Return ``properties`` for the snapshot ``snapshot_id`` after ``latest``, with the records of both.

    The record of a run replaces an earlier record of the same run.
    """
    kept = inherited_property(latest, older, MAINTENANCE_PROPERTY)
    own = [
        replace(record, snapshot_ids=(*record.snapshot_ids, snapshot_id)[-_MAX_IDS:])
        for record in records_of(properties.get(MAINTENANCE_PROPERTY))
    ]
    if not own:
        return dict(properties) if kept is None else {**properties, MAINTENANCE_PROPERTY: kept}
    runs = {record.run for record in own}
    records = [*own, *(record for record in records_of(kept) if record.run not in runs)]
    return {**properties, MAINTENANCE_PROPERTY: _dumped(records)}


def _dumped(records: Sequence[MaintenanceRecord]) -> str:
    """Return the newest records as text, within the limits."""
    texts: list[str] = []
    characters = 2
    for record in records[:_MAX_RECORDS]:
        text = json.dumps(record.to_list(), separators=(",", ":"))
        characters += len(text) + 1
        if characters > _MAX_CHARACTERS:
            break
        texts.append(text)
    return f"[{','.join(texts)}]"
