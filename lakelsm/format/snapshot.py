"""Snapshot and tag JSON (docs/format.md 4.1 and 4.3). Unknown keys are carried along unread."""

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

#: ``version`` of the snapshots that lakelsm writes. Persisted: do not change
SNAPSHOT_VERSION = 3
#: ``commitIdentifier`` of a batch job that names none. Persisted: do not change
BATCH_COMMIT_IDENTIFIER = 9223372036854775807
#: Key of the checksums of a snapshot: by file name, of its properties, and `_OWN` of `_SEALED`. Persisted: do not change
CHECKSUMS_KEY = "lakelsm.checksums"
_OWN = "snapshot"
#: Snapshot property: which snapshot the properties were written for (`Snapshot.signed`). Persisted: do not change
SIGNATURE_PROPERTY = "lakelsm.snapshot"
#: Snapshot property: the fingerprint of the base of this snapshot. Persisted: do not change
BASE_PROPERTY = "lakelsm.base-snapshot"
_CHECKSUM = re.compile("[0-9a-f]{8}")


class CommitKind(str, Enum):
    """What a snapshot's delta means. Persisted: do not change."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One version of a table: its base list plus its delta list. Names are the JSON keys in snake_case.

    Counts are rows of files, retractions included; sizes are bytes; ``time_millis`` is epoch milliseconds.
    ``extra`` holds keys that lakelsm does not know, as parsed.
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

        Raises CorruptTableError where it is no snapshot, UnsupportedFeatureError on an unknown commit kind.
        """
        return _snapshot(parse_object(text, source), source)

    @property
    def metadata_files(self) -> list[str]:
        """The names of its manifest lists and index manifest."""
        names = (self.base_manifest_list, self.delta_manifest_list, self.changelog_manifest_list, self.index_manifest)
        return [name for name in names if name is not None]

    @property
    def fingerprint(self) -> str:
        """The fingerprint, which differs for another snapshot with its id after a rollback. Tags keep it.

        Each commit gives its manifest lists new names. Engines without uuids leave them out of tags, branches and
        snapshots that they copy, so a uuid would not do.
        """
        return self.base_manifest_list

    def matches(self, other: Snapshot | None) -> bool:
        """Whether another one is of the very same commit."""
        return other is not None and (self.id, self.fingerprint) == (other.id, other.fingerprint)

    def signed(self) -> Snapshot:
        """The same snapshot, whose properties, if any, name it: by uuid, id, base manifest list and commit user.

        Java copies the properties of the last snapshot when it compacts manifests or replaces a manifest list, and those
        of an older snapshot when it rolls back to a tag as the latest. The copy still names the snapshot it was made of.
        """
        if not self.properties:
            return self
        return replace(self, properties={**self.properties, SIGNATURE_PROPERTY: self._signature(self.uuid or "-")})

    @property
    def own_properties(self) -> Mapping[str, str]:
        """The properties if lakelsm wrote them for this very snapshot, else none: a property that another engine copied
        does not describe the snapshot that has it.

        An engine that restores the snapshot from a tag keeps all that the signature names, except for the uuid.
        """
        properties = self.properties or {}
        signature = properties.get(SIGNATURE_PROPERTY, "")
        return properties if signature == self._signature(self.uuid or signature.partition(" ")[0]) else {}

    @property
    def is_ours(self) -> bool:
        """Whether lakelsm wrote the properties of this very snapshot."""
        return bool(self.own_properties)

    def _signature(self, uuid: str) -> str:
        return f"{uuid} {self.id} {self.fingerprint} {self.commit_user}"

    def follows(self, before: Snapshot) -> bool:
        """Whether its base is the present snapshot before it; snapshots of other writers do not record it."""
        return self.own_properties.get(BASE_PROPERTY, before.fingerprint) == before.fingerprint

    def checksum_of(self, name: str) -> int | None:
        """The CRC-32 of one of its `metadata_files`, where its writer kept it."""
        text = self._kept_checksums().get(name)
        return int(text, 16) if isinstance(text, str) and _CHECKSUM.fullmatch(text) else None

    def sealed(self, checksums: Mapping[str, int | None]) -> Snapshot:
        """The same snapshot with checksums under a key of lakelsm: of its files by name, and of its own content.

        Other engines ignore the key, and leave it out of the snapshots and tags that they make of this one.
        """
        files = {name: f"{checksum:08x}" for name, checksum in checksums.items() if checksum is not None}
        return replace(self, extra={**self.extra, CHECKSUMS_KEY: {**files, **self._own_checksums()}})

    def is_intact(self) -> bool:
        """Whether its content matches the checksums of its writer, if any."""
        kept = self._kept_checksums()
        return all(kept.get(name, text) == text for name, text in self._own_checksums().items())

    def without_changelog(self) -> Snapshot:
        """The same snapshot with an expired changelog; its content has new checksums if it had any."""
        bare = replace(
            self, changelog_manifest_list=None, changelog_manifest_list_size=None, changelog_record_count=None
        )
        kept = self._kept_checksums()
        names = [*bare.metadata_files, *self.schema_files]
        return bare.sealed({name: self.checksum_of(name) for name in names}) if kept else bare

    @property
    def schema_files(self) -> list[str]:
        """The names of the schema files that it has checksums of: its own schema, and those of snapshots before it."""
        return [name for name in self._kept_checksums() if schema_id_of(name) is not None]

    def _kept_checksums(self) -> Mapping[str, object]:
        """Those of its writer. A copy that another engine used for another snapshot has another uuid."""
        kept = self.extra.get(CHECKSUMS_KEY)
        signed, _, _ = (self.properties or {}).get(SIGNATURE_PROPERTY, "").partition(" ")
        is_copy = bool(signed) and self.uuid not in (None, signed)
        return kept if isinstance(kept, dict) and not is_copy else {}

    def _own_checksums(self) -> dict[str, str]:
        """CRC-32 of what decides rows, and of the properties where it has some."""
        own = {_OWN: _crc([getattr(self, name) for name in _SEALED])}
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
    """A named snapshot that expiry keeps.

    ``create_time`` is the writer's wall clock: year, month, day, hour, minute, second, nanosecond; the last
    zeros may be missing. ``time_retained_seconds`` is how long the tag lives. None without a retention.
    """

    snapshot: Snapshot
    create_time: tuple[int, ...] | None = None
    time_retained_seconds: float | None = None

    @classmethod
    def from_json(cls, text: str | bytes, source: str = "the tag") -> Tag:
        """Parse a tag file; errors as in Snapshot.from_json."""
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
            raise CorruptTableError(f"{source} has a damaged tagCreateTime or tagTimeRetained.") from error

    def to_json(self) -> str:
        """Return the text of the tag file: the snapshot's, plus the tag's own keys where it has them."""
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
#: The least number that a writer gives.
_LEAST = {
    "id": 1,
    "schema_id": 0,
    "base_manifest_list_size": 0,
    "delta_manifest_list_size": 0,
    "changelog_manifest_list_size": 0,
    "next_row_id": 0,
}
#: The years 1 to 9999.
_FIRST_MILLIS, _LAST_MILLIS = -62_135_596_800_000, 253_402_300_799_999
#: Kind and writer of a snapshot, in the order of both lists below. Persisted: do not change
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
#: What the checksum of a snapshot is of. Persisted: do not change
_SEALED = (*_STATE, "commit_identifier", "commit_kind", "total_record_count", "delta_record_count")
#: Java's order of keys, for readers of the file; no reader depends on it.
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
    """The duration in a tag. Raises ValueError for any other text."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise ValueError(f"{value!r} is no duration")
    return float(value)


def _snapshot(values: Mapping[str, Any], source: str) -> Snapshot:
    known: dict[str, Any] = {name: values.get(key) for name, key in _JSON_KEYS.items()}
    for name in _REQUIRED:
        if known[name] is None:
            raise CorruptTableError(f"{source} lacks the key {_JSON_KEYS[name]}.")
    for name, value in known.items():
        expected = str if name in _TEXT_KEYS else dict if name in _MAP_KEYS else int
        if value is not None and (not isinstance(value, expected) or isinstance(value, bool)):
            raise CorruptTableError(f"{source} has {value!r} under {_JSON_KEYS[name]}.")
    for name, least in _LEAST.items():
        if known[name] is not None and known[name] < least:
            raise CorruptTableError(f"{source} has {known[name]} under {_JSON_KEYS[name]}, which no snapshot can have.")
    for name, kind in _MAP_KEYS.items():
        wrong = next((value for value in (known[name] or {}).values() if type(value) is not kind), None)
        if wrong is not None:
            raise CorruptTableError(f"{source} has {wrong!r} in {_JSON_KEYS[name]}.")
    if not _FIRST_MILLIS <= known["time_millis"] <= _LAST_MILLIS:
        raise CorruptTableError(f"{source} has {known['time_millis']!r} under timeMillis, which is no time.")
    for name in _FILE_NAME_KEYS:
        if known[name] is not None:
            check_name(known[name], _JSON_KEYS[name], source)
    try:
        known["commit_kind"] = CommitKind(known["commit_kind"])
    except ValueError as error:
        raise UnsupportedFeatureError(
            f"{source} has commitKind {known['commit_kind']!r}, which lakelsm does not know."
        ) from error
    if known["version"] is None:
        known["version"] = SNAPSHOT_VERSION
    json_keys = set(_JSON_KEYS.values())
    snapshot = Snapshot(**known, extra={key: value for key, value in values.items() if key not in json_keys})
    if not snapshot.is_intact():
        raise CorruptTableError(f"{source} does not have the checksum that its writer gave it: restore the file.")
    return snapshot


def _crc(value: object) -> str:
    return f"{zlib.crc32(json.dumps(value, sort_keys=True, default=repr).encode('ascii')):08x}"


def _dump(values: Mapping[str, object]) -> str:
    return json.dumps(values, indent=2, separators=(",", " : "), ensure_ascii=False)


def newest_at(millis: int, ids: Sequence[int], read: Callable[[int], Snapshot | None]) -> Snapshot | None:
    """The newest that was committed at or before a time (epoch millis), by bisection of ascending ids.

    None if none was. ``read`` returns None for a deleted one; older ones are deleted first.
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
