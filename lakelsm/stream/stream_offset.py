"""The offset of a stream: up to where a reader has read a table (docs/design/streams.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum

from lakelsm.errors import StreamOffsetError

#: The version of the form of an offset. Persisted in checkpoints: do not change
_VERSION = 1
_VERSION_KEY = "lakelsm-offset"
_LONGEST_TEXT = 1024
_MAX_NUMBER = (1 << 63) - 1


class StreamPhase(Enum):
    """The part of a stream that a snapshot is read for. Persisted in checkpoints: do not change."""

    #: The rows of the snapshot from which the stream starts.
    FULL = "full"
    #: The changes of the snapshot.
    CHANGES = "changes"


@dataclass(frozen=True)
class StreamOffset:
    """Everything up to this offset was read.

    ``table`` is the digest of the table (`TableStore` of another or a re-created table has another one). ``snapshot_id``
    is the newest snapshot of which something was read, or of which the first files are read next; 0 for a table without
    snapshots. ``fingerprint`` is that of the snapshot. ``position`` is the number of files of the snapshot that were
    read, in the canonical order of the ``phase``, and ``files`` their total number; both are None if all were read.
    """

    table: str
    snapshot_id: int
    fingerprint: str
    phase: StreamPhase
    _: KW_ONLY
    position: int | None = None
    files: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether everything of the snapshot was read."""
        return self.position is None

    @property
    def loads(self) -> bool:
        """Whether rows of the full phase remain."""
        return self.phase is StreamPhase.FULL and self.position is not None

    @property
    def next_snapshot_id(self) -> int:
        """The id of the snapshot that is read next: the same one if a part of it remains."""
        return self.snapshot_id + 1 if self.is_complete else self.snapshot_id

    def at(self, position: int, files: int) -> StreamOffset:
        """Return the offset in the same snapshot and phase at a position; ``files`` is the number of all files."""
        if position >= files:
            return replace(self, position=None, files=None)
        return replace(self, position=position, files=files if position else None)

    def to_json(self) -> dict[str, str | int | None]:
        """Return the offset as a JSON object."""
        return {
            _VERSION_KEY: _VERSION,
            "table": self.table,
            "snapshot": self.snapshot_id,
            "fingerprint": self.fingerprint,
            "phase": self.phase.value,
            "position": self.position,
            "files": self.files,
        }

    @staticmethod
    def of_json(value: object) -> StreamOffset:
        """Return the offset of a JSON object. Raises StreamOffsetError for any other value."""
        if not isinstance(value, Mapping) or type(value.get(_VERSION_KEY)) is not int:
            raise _wrong(f"{_shown(value)} is not an offset of lakelsm")
        if value[_VERSION_KEY] != _VERSION:
            raise _wrong(f"an offset of version {_shown(value[_VERSION_KEY])} is not supported")
        phases = {phase.value: phase for phase in StreamPhase}
        phase = value.get("phase")
        if not isinstance(phase, str) or phase not in phases:
            raise _wrong(f"its phase {_shown(phase)} is not one of {', '.join(phases)}")
        position, files = _number(value, "position", optional=True), _number(value, "files", optional=True)
        snapshot_id = _number(value, "snapshot")
        if (position is None or not position) != (files is None) or (files is not None and files <= (position or 0)):
            raise _wrong(f"its position {_shown(value.get('position'))} of {_shown(value.get('files'))} files is invalid")
        table, fingerprint = _text(value, "table"), _text(value, "fingerprint")
        if (snapshot_id == 0) != (not fingerprint) or not table:
            raise _wrong(f"snapshot {snapshot_id} with the fingerprint {_shown(fingerprint)} is invalid")
        return StreamOffset(table, snapshot_id or 0, fingerprint, phases[phase], position=position, files=files)


def _number(value: Mapping[str, object], key: str, optional: bool = False) -> int | None:
    found = value.get(key)
    if found is None and optional:
        return None
    if type(found) is not int or not 0 <= found <= _MAX_NUMBER:
        raise _wrong(f"its {key} {_shown(found)} is not a number")
    return found


def _text(value: Mapping[str, object], key: str) -> str:
    found = value.get(key)
    if not isinstance(found, str) or len(found) > _LONGEST_TEXT:
        raise _wrong(f"its {key} {_shown(found)} is not a text")
    return found


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _wrong(problem: str) -> StreamOffsetError:
    return StreamOffsetError(
        f"offset: {problem}. Use an offset that this table's stream returned, or start a new stream."
    )
