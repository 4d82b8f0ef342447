"""The JSON of snapshots and tags (docs/format.md 4.1 and 4.3). Unknown keys are kept unread."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.file_names import check_name, schema_id_of
from lakelsm.json_document import parse_object

#: The ``version`` of snapshots that lakelsm writes. Persisted: do not change
SNAPSHOT_VERSION = 3
#: The ``commitIdentifier`` of a batch job without one. Persisted: do not change
BATCH_COMMIT_IDENTIFIER = 9223372036854775807
#: Key of the checksums that a snapshot contains. Persisted: do not change
#: Checksums are by file name, of the properties, and under `_OWN` of the fields `_CHECKED`.
CHECKSUMS_KEY = "lakelsm.checksums"
_OWN = "snapshot"
#: Snapshot property: the snapshot for which the properties were written (`Snapshot.signed`). Persisted: do not change
SIGNATURE_PROPERTY = "lakelsm.snapshot"
#: Snapshot property: the fingerprint of the snapshot that this one is based on. Persisted: do not change
BASE_PROPERTY = "lakelsm.base-snapshot"
_CHECKSUM = re.compile("[0-9a-f]{8}")


class CommitKind(str, Enum):
    """The meaning of a snapshot's delta. Persisted: do not change."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One version of a table: its base list plus its delta list. Attributes are the JSON keys in snake_case.

    Counts are rows of files, retractions included; sizes are bytes; ``time_millis`` is epoch milliseconds.
    ``extra`` has the keys that lakelsm does not know, as parsed.
    """

    id: int
    schema_id: int
    base_manifest_list: str
    delta_manifest_list: str
    commit_user: str
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    total_record_count: int
    delta_record_count: int
    version: int = SNAPSHOT_VERSION
    uuid: str | None = None
    base_manifest_list_size: int | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    writer_version: str | None = None
    log_offsets: Mapping[str, int] | None = None
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: Mapping[str, str] | None = None
    next_row_id: int | None = None
    operation: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str | bytes, source: str = "the snapshot") -> Snapshot:
        """Parse a snapshot file; ``source`` names it in errors.

        Raises CorruptTableError if it is not a snapshot, and UnsupportedFeatureError for an unknown commit kind.
        """
        return _snapshot(parse_object(text, source), source)

    @property
    def metadata_files(self) -> list[str]:
        """The names of the snapshot's manifest lists and index manifest."""
        names = (self.base_manifest_list, self.delta_manifest_list, self.changelog_manifest_list, self.index_manifest)
        return [name for name in names if name is not None]

    @property
    def fingerprint(self) -> str:
        """The fingerprint: after a rollback, another snapshot with the same id has another one. Tags keep it.

        Each commit gives its manifest lists new names. A uuid does not identify a snapshot, because engines without
        uuids omit them from tags, branches and snapshots that they copy.
        """
        return self.base_manifest_list

    def matches(self, other: Snapshot | None) -> bool:
        """Return whether another snapshot is of the same commit."""
        return other is not None and (self.id, self.fingerprint) == (other.id, other.fingerprint)

    def signed(self) -> Snapshot:
        """Return the snapshot with a signature in its properties, if any: uuid, id, base manifest list and commit user.

        Java copies the properties of the last snapshot when it compacts manifests or replaces a manifest list, and those
        of an older snapshot when it rolls back to a tag as the latest. Such a copy still names the original snapshot.
        """
        if not self.properties:
            return self
        return replace(self, properties={**self.properties, SIGNATURE_PROPERTY: self._signature(self.uuid or "-")})

    @property
    def own_properties(self) -> Mapping[str, str]:
        """The properties if lakelsm wrote them for this snapshot, else an empty mapping.

        Properties that another engine copied do not describe the snapshot that has them. An engine that restores the
        snapshot from a tag keeps all parts of the signature except for the uuid.
        """
        properties = self.properties or {}
        signature = properties.get(SIGNATURE_PROPERTY, "")
        return properties if signature == self._signature(self.uuid or signature.partition(" ")[0]) else {}

    @property
    def is_ours(self) -> bool:
        """Whether lakelsm wrote the properties of this snapshot."""
        return bool(self.own_properties)

    def _signature(self, uuid: str) -> str:
        return f"{uuid} {self.id} {self.fingerprint} {self.commit_user}"

    def follows(self, before: Snapshot) -> bool:
        """Return whether this snapshot is based on ``before``. True if the writer did not record its base snapshot."""
        return self.own_properties.get(BASE_PROPERTY, before.fingerprint) == before.fingerprint

    def checksum_of(self, name: str) -> int | None:
        """Return the CRC-32 of one of the `metadata_files`, or None if the writer did not record it."""
        text = self._kept_checksums().get(name)
        return int(text, 16) if isinstance(text, str) and _CHECKSUM.fullmatch(text) else None

    def sealed(self, checksums: Mapping[str, int | None]) -> Snapshot:
        """Return the snapshot with checksums under a key of lakelsm: of its files by name, and of its own content.

        Other engines ignore the key, and omit it from the snapshots and tags that they make of this one.
        """
        files = {name: f"{checksum:08x}" for name, checksum in checksums.items() if checksum is not None}
        return replace(self, extra={**self.extra, CHECKSUMS_KEY: {**files, **self._own_checksums()}})

    def is_intact(self) -> bool:
        """Return whether the content matches the checksums of the writer, if any."""
        kept = self._kept_checksums()
        return all(kept.get(name, text) == text for name, text in self._own_checksums().items())

    def without_changelog(self) -> Snapshot:
        """Return the snapshot with an expired changelog. Its content gets new checksums if it had any."""
        bare = replace(
            self, changelog_manifest_list=None, changelog_manifest_list_size=None, changelog_record_count=None
        )
        kept = self._kept_checksums()
        names = [*bare.metadata_files, *self.schema_files]
        return bare.sealed({name: self.checksum_of(name) for name in names}) if kept else bare

    @property
    def schema_files(self) -> list[str]:
        """The schema files that the snapshot has checksums of: its own schema, and schemas of earlier snapshots."""
        return [name for name in self._kept_checksums() if schema_id_of(name) is not None]

    def _kept_checksums(self) -> Mapping[str, object]:
        """Return the writer's checksums. A copy that another engine made for another snapshot has another uuid."""
        kept = self.extra.get(CHECKSUMS_KEY)
        signed, _, _ = (self.properties or {}).get(SIGNATURE_PROPERTY, "").partition(" ")
        is_copy = bool(signed) and self.uuid not in (None, signed)
        return kept if isinstance(kept, dict) and not is_copy else {}

    def _own_checksums(self) -> dict[str, str]:
        """Return the CRC-32 of the fields that determine rows, and of the properties if there are any."""
        own = {_OWN: _crc([getattr(self, name) for name in _CHECKED])}
        return own if self.properties is None else {**own, "properties": _crc(self.properties)}

    def to_json(self) -> str:
        """Return the text of the snapshot file; absent optional keys are left out."""
        return _dump(self._to_object())

    def _to_object(self) -> dict[str, object]:
        present = {_JSON_KEYS[name]: getattr(self, name) for name in _KEY_ORDER}
        values = {key: value for key, value in present.items() if value is not None}
        values["commitKind"] = self.commit_kind.value
        return {**values, **self.extra}


@dataclass(frozen=True)
class Tag:
    """A named snapshot whose files expiry keeps.

    ``create_time`` is the writer's wall clock: year, month, day, hour, minute, second, nanosecond; zeros at the end
    may be missing. ``time_retained_seconds`` is the lifetime of the tag, None without a limit.
    """

    snapshot: Snapshot
    create_time: tuple[int, ...] | None = None
    time_retained_seconds: float | None = None

    @classmethod
    def from_json(cls, text: str | bytes, source: str = "the tag") -> Tag:
        """Parse a tag file. Errors are those of Snapshot.from_json."""
        values = parse_object(text, source)
        created = values.pop("tagCreateTime", None)
        retained = values.pop("tagTimeRetained", None)
        try:
            return cls(
                snapshot=_snapshot(values, source),
                create_time=None if created is None else tuple(int(part) for part in created),
                time_retained_seconds=None if retained is None else _seconds(retained),
            )
        except (TypeError, ValueError) as error:
            raise CorruptTableError(f"{source} is damaged: tagCreateTime or tagTimeRetained is wrong.") from error

    def to_json(self) -> str:
        """Return the text of the tag file: the snapshot's keys and the tag's own keys, if set."""
        values = self.snapshot._to_object()
        if self.create_time is not None:
            values["tagCreateTime"] = list(self.create_time)
        if self.time_retained_seconds is not None:
            values["tagTimeRetained"] = self.time_retained_seconds
        return _dump(values)


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


_JSON_KEYS = {item.name: _camel(item.name) for item in fields(Snapshot) if item.name != "extra"}
_REQUIRED = [
    "id",
    "schema_id",
    "base_manifest_list",
    "delta_manifest_list",
    "commit_user",
    "commit_identifier",
    "commit_kind",
    "time_millis",
    "total_record_count",
    "delta_record_count",
]
_TEXT_KEYS = {
    "base_manifest_list",
    "delta_manifest_list",
    "commit_user",
    "uuid",
    "changelog_manifest_list",
    "index_manifest",
    "writer_version",
    "statistics",
    "operation",
    "commit_kind",
}
_FILE_NAME_KEYS = (
    "base_manifest_list",
    "delta_manifest_list",
    "changelog_manifest_list",
    "index_manifest",
    "statistics",
)
_MAP_KEYS = {"log_offsets": int, "properties": str}
#: Minimum values of numeric keys.
_MIN_VALUES = {
    "id": 1,
    "schema_id": 0,
    "base_manifest_list_size": 0,
    "delta_manifest_list_size": 0,
    "changelog_manifest_list_size": 0,
    "next_row_id": 0,
}
#: The years 1 to 9999 in epoch milliseconds.
_FIRST_MILLIS, _LAST_MILLIS = -62_135_596_800_000, 253_402_300_799_999
#: The fields that both lists below contain, in order. Persisted: do not change
_STATE = (
    "id",
    "schema_id",
    "base_manifest_list",
    "base_manifest_list_size",
    "delta_manifest_list",
    "delta_manifest_list_size",
    "changelog_manifest_list",
    "changelog_manifest_list_size",
    "index_manifest",
    "commit_user",
)
#: The fields that the snapshot's checksum covers. Persisted: do not change
_CHECKED = (*_STATE, "commit_identifier", "commit_kind", "total_record_count", "delta_record_count")
#: The order of keys in Java's files, for people who read them; no reader depends on it.
_KEY_ORDER = [
    "version",
    "uuid",
    *_STATE,
    "writer_version",
    "commit_identifier",
    "commit_kind",
    "time_millis",
    "log_offsets",
    "total_record_count",
    "delta_record_count",
    "changelog_record_count",
    "watermark",
    "statistics",
    "properties",
    "next_row_id",
    "operation",
]


def _seconds(value: object) -> float:
    """Return the duration in a tag in seconds. Raises ValueError for another value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise ValueError(f"{value!r} is not a duration")
    return float(value)


def _snapshot(values: Mapping[str, Any], source: str) -> Snapshot:
    known: dict[str, Any] = {name: values.get(key) for name, key in _JSON_KEYS.items()}
    for name in _REQUIRED:
        if known[name] is None:
            raise CorruptTableError(f"{source} is damaged: it has no key {_JSON_KEYS[name]}. Restore the file.")
    for name, value in known.items():
        expected = str if name in _TEXT_KEYS else dict if name in _MAP_KEYS else int
        if value is not None and (not isinstance(value, expected) or isinstance(value, bool)):
            raise CorruptTableError(f"{source} is damaged: {_JSON_KEYS[name]} is {value!r}. Restore the file.")
    for name, minimum in _MIN_VALUES.items():
        if known[name] is not None and known[name] < minimum:
            key = _JSON_KEYS[name]
            raise CorruptTableError(f"{source} is damaged: {key} is {known[name]}, less than {minimum}. Restore it.")
    for name, kind in _MAP_KEYS.items():
        wrong = next((value for value in (known[name] or {}).values() if type(value) is not kind), None)
        if wrong is not None:
            raise CorruptTableError(f"{source} is damaged: {_JSON_KEYS[name]} has {wrong!r}. Restore the file.")
    if not _FIRST_MILLIS <= known["time_millis"] <= _LAST_MILLIS:
        raise CorruptTableError(f"{source} is damaged: timeMillis is {known['time_millis']!r}. Restore the file.")
    for name in _FILE_NAME_KEYS:
        if known[name] is not None:
            check_name(known[name], _JSON_KEYS[name], source)
    try:
        known["commit_kind"] = CommitKind(known["commit_kind"])
    except ValueError as error:
        raise UnsupportedFeatureError(f"{source}: commitKind {known['commit_kind']!r} is not supported.") from error
    if known["version"] is None:
        known["version"] = SNAPSHOT_VERSION
    json_keys = set(_JSON_KEYS.values())
    snapshot = Snapshot(**known, extra={key: value for key, value in values.items() if key not in json_keys})
    if not snapshot.is_intact():
        raise CorruptTableError(f"{source} is damaged: its checksum differs. Restore the file.")
    return snapshot


def _crc(value: object) -> str:
    return f"{zlib.crc32(json.dumps(value, sort_keys=True, default=repr).encode('ascii')):08x}"


def _dump(values: Mapping[str, object]) -> str:
    return json.dumps(values, indent=2, separators=(",", " : "), ensure_ascii=False)


def newest_at(millis: int, ids: Sequence[int], read: Callable[[int], Snapshot | None]) -> Snapshot | None:
    """Return the newest snapshot that was committed at or before ``millis`` (epoch), by bisection of ascending ``ids``.

    Returns None without such a snapshot. ``read`` returns None for a deleted snapshot; older snapshots are deleted first.
    """
    low, high = 0, len(ids) - 1
    best: Snapshot | None = None
    while low <= high:
        middle = (low + high) // 2
        snapshot = read(ids[middle])
        if snapshot is None or snapshot.time_millis <= millis:
            best, low = snapshot or best, middle + 1
        else:
            high = middle - 1
    return best
