"""The JSON of snapshots and tags."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.snapshot import CommitKind, Snapshot, Tag
from tests.format.manifest.manifest_samples import golden_files

MINIMUM = {
    "version": 3,
    "id": 7,
    "schemaId": 1,
    "baseManifestList": "manifest-list-u-0",
    "deltaManifestList": "manifest-list-u-1",
    "commitUser": "me",
    "commitIdentifier": 9223372036854775807,
    "commitKind": "APPEND",
    "timeMillis": 1795248696140,
    "totalRecordCount": 2,
    "deltaRecordCount": -2,
}


def test_snapshots_of_every_golden_table_keep_all_their_keys(tmp_path: Path) -> None:
    count = 0
    for name, path in golden_files(tmp_path, "*/snapshot/snapshot-*"):
        snapshot = Snapshot.from_json(path.read_text(), name)
        present = {key: value for key, value in json.loads(path.read_text()).items() if value is not None}
        assert json.loads(snapshot.to_json()) == present, name
        assert not snapshot.extra, name
        assert path.name == f"snapshot-{snapshot.id}"
        for manifest_list in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
            assert (path.parents[1] / "manifest" / manifest_list).exists(), name
        count += 1
    assert count > 40


def test_the_text_is_javas_byte_for_byte(tmp_path: Path) -> None:
    for name, path in golden_files(tmp_path, "simple/snapshot/snapshot-*"):
        if name.startswith("2.1"):
            assert Snapshot.from_json(path.read_bytes(), name).to_json() == path.read_text()


def test_tags_of_every_golden_table_are_read(tmp_path: Path) -> None:
    for name, path in golden_files(tmp_path, "*/tag/tag-*"):
        assert json.loads(Tag.from_json(path.read_text(), name).to_json()) == json.loads(path.read_text())


def test_the_needed_keys_are_enough() -> None:
    snapshot = Snapshot.from_json(json.dumps(MINIMUM))
    assert snapshot.commit_kind is CommitKind.APPEND
    assert (snapshot.index_manifest, snapshot.properties, snapshot.next_row_id) == (None, None, None)
    assert json.loads(snapshot.to_json()) == MINIMUM


def test_every_key_is_read_back() -> None:
    snapshot = replace(
        Snapshot.from_json(json.dumps(MINIMUM)),
        uuid="u",
        base_manifest_list_size=1,
        delta_manifest_list_size=2,
        changelog_manifest_list="c",
        changelog_manifest_list_size=3,
        index_manifest="i",
        writer_version="lakelsm",
        log_offsets={},
        changelog_record_count=0,
        watermark=-9223372036854775808,
        statistics="stat-1",
        properties={"a": "b"},
        next_row_id=0,
        operation="WRITE",
    )
    assert Snapshot.from_json(snapshot.to_json()) == snapshot


def test_unknown_keys_are_kept() -> None:
    snapshot = Snapshot.from_json(json.dumps({**MINIMUM, "future": {"x": [1.5]}}))
    assert snapshot.extra == {"future": {"x": [1.5]}}
    assert json.loads(snapshot.to_json())["future"] == {"x": [1.5]}


def test_another_version_number_is_accepted() -> None:
    assert Snapshot.from_json(json.dumps({**MINIMUM, "version": 9})).version == 9


@pytest.mark.parametrize("key", [key for key in MINIMUM if key != "version"])
def test_a_missing_key_is_named(key: str) -> None:
    values = {name: value for name, value in MINIMUM.items() if name != key}
    with pytest.raises(CorruptTableError, match=f"snapshot-7 is damaged: it has no key {key}"):
        Snapshot.from_json(json.dumps(values), "snapshot-7")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", json.dumps({**MINIMUM, "id": "x"}), json.dumps({**MINIMUM, "id": True})]
)
def test_other_text_instead_of_a_snapshot_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptTableError, match="snapshot-7"):
        Snapshot.from_json(text, "snapshot-7")


def test_an_unknown_commit_kind_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="'MERGE'"):
        Snapshot.from_json(json.dumps({**MINIMUM, "commitKind": "MERGE"}))


def test_a_tag_without_retention_is_a_snapshot_file() -> None:
    snapshot = Snapshot.from_json(json.dumps(MINIMUM))
    assert Tag(snapshot).to_json() == snapshot.to_json()
    assert Tag.from_json(snapshot.to_json()) == Tag(snapshot)


def test_the_retention_of_a_tag_is_read_back() -> None:
    extra = {"tagCreateTime": [2026, 11, 21, 8, 11, 36, 146845382], "tagTimeRetained": 86400.0}
    tag = Tag.from_json(json.dumps({**MINIMUM, **extra}))
    assert tag.create_time == (2026, 11, 21, 8, 11, 36, 146845382)
    assert tag.time_retained_seconds == 86400
    assert not tag.snapshot.extra
    assert Tag.from_json(tag.to_json()) == tag


def test_a_damaged_tag_is_named() -> None:
    with pytest.raises(CorruptTableError, match="tag-x"):
        Tag.from_json(json.dumps({**MINIMUM, "tagCreateTime": "yesterday"}), "tag-x")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("baseManifestList", "../../etc/passwd"),
        ("deltaManifestList", "/etc/passwd"),
        ("changelogManifestList", ".."),
        ("indexManifest", ""),
        ("statistics", "a\0b"),
        ("properties", {"sequence.generation.max-sequence-number": 5}),
        ("properties", {"a": ["b"]}),
        ("logOffsets", {"0": "x"}),
        ("logOffsets", {"0": True}),
        ("timeMillis", 1 << 62),
        ("timeMillis", -(1 << 62)),
        ("id", 0),
        ("schemaId", -1),
        ("baseManifestListSize", -1),
        ("deltaManifestListSize", -1),
        ("changelogManifestListSize", -1),
        ("nextRowId", -1),
        # Values outside the range of other tools.
        ("commitUser", "a\ud800"),
        ("id", 1 << 63),
        ("watermark", -(1 << 63) - 1),
        ("commitUser", 5),
    ],
)
def test_a_value_that_no_writer_writes_is_refused_with_its_key(key: str, value: object) -> None:
    with pytest.raises(CorruptTableError, match=f"^snapshot-9 is damaged: {key} "):
        Snapshot.from_json(json.dumps({**MINIMUM, key: value}), "snapshot-9")
