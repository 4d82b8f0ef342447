"""Tables whose metadata or links lead elsewhere: no file outside of the table's directory is read or written."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.index.index_manifest import decode_index_manifest, encode_index_manifest
from lakelsm.format.manifest import (
    ManifestEntry,
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
)
from tests.compact.local_table import LocalTable
from tests.examples import examples
from tests.hostile.hostile_table import NEW_ROW, HostileTable

Make = Callable[[], HostileTable]


def rename_in_snapshot(key: str) -> Callable[[Path, str], None]:
    def rename(path: Path, name: str) -> None:
        path.write_text(json.dumps({**json.loads(path.read_bytes()), key: name}))

    return rename


def rename_in_list(path: Path, name: str) -> None:
    first, *others = decode_manifest_list(path.read_bytes(), "list")
    path.write_bytes(encode_manifest_list([replace(first, file_name=name), *others]))


def rewrite_manifests(table_root: Path, change: Callable[[ManifestEntry], ManifestEntry]) -> None:
    """Change all entries of all manifests, and keep their sizes in the lists."""
    for path in (table_root / "manifest").glob("manifest-*"):
        if "list" not in path.name:
            entries = [change(entry) for entry in decode_manifest(path.read_bytes(), "manifest")]
            path.write_bytes(encode_manifest(entries))
    record_manifest_sizes(table_root)


def record_manifest_sizes(table_root: Path) -> None:
    """Record the present sizes of the manifests in the manifest lists."""
    for path in (table_root / "manifest").glob("manifest-list-*"):
        metas = decode_manifest_list(path.read_bytes(), "list")
        sizes = [(path.parent / meta.file_name).stat().st_size for meta in metas]
        path.write_bytes(encode_manifest_list([replace(m, file_size=size) for m, size in zip(metas, sizes)]))


def rename_in_manifest(path: Path, name: str) -> None:
    rewrite_manifests(path.parent.parent, lambda entry: replace(entry, file=replace(entry.file, file_name=name)))


def rename_in_index_manifest(path: Path, name: str) -> None:
    first, *others = decode_index_manifest(path.read_bytes(), "index manifest")
    path.write_bytes(encode_index_manifest([replace(first, file=replace(first.file, file_name=name)), *others]))


#: The file that names another one, a function that changes the name, and the operations that must refuse it.
HOLDERS: dict[str, tuple[str, Callable[[Path, str], None], tuple[str, ...]]] = {
    "baseManifestList": ("snapshot", rename_in_snapshot("baseManifestList"), ("read", "write", "compact", "look at")),
    "deltaManifestList": ("snapshot", rename_in_snapshot("deltaManifestList"), ("read", "write", "compact", "look at")),
    "indexManifest": ("snapshot", rename_in_snapshot("indexManifest"), ("read", "write")),
    "statistics": ("snapshot", rename_in_snapshot("statistics"), ("read", "write")),
    "baseManifestList of a tag": ("tag", rename_in_snapshot("baseManifestList"), ("read a tag",)),
    "a base list": ("base list", rename_in_list, ("read", "write", "compact", "look at")),
    "a delta list": ("delta list", rename_in_list, ("read", "write", "compact", "changelog")),
    "manifests": ("manifest", rename_in_manifest, ("read", "compact", "changelog", "read a tag")),
    "an index manifest": ("index manifest", rename_in_index_manifest, ("write",)),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_name_that_is_a_path_is_refused_with_the_file_that_holds_it(make: Make, holder: str) -> None:
    kind, rename, operations = HOLDERS[holder]
    for climbing in ("../../../outside/{}", "{outside}/{}", "../manifest/{}", "..", ".", ""):
        table = make()
        path = table.kinds[kind]
        decoy = sorted(os.listdir(table.outside))[0]
        name = climbing.format(decoy, outside=table.outside)
        rename(path, name)
        for error in table.refused(*operations):
            assert type(error) is CorruptTableError
            assert repr(name) in str(error), error
            assert str(table.root) in str(error) and ("manifests" in holder or path.name in str(error)), error


def test_data_files_at_external_paths_are_refused_by_name(make: Make) -> None:
    table = make()
    elsewhere = f"file:{table.outside / table.kinds['data file'].name}"
    rewrite_manifests(table.root, lambda entry: replace(entry, file=replace(entry.file, external_path=elsewhere)))
    for error in table.refused("read", "compact", "changelog", "read a tag"):
        assert isinstance(error, UnsupportedFeatureError) and elsewhere in str(error)


def test_index_files_at_external_paths_are_refused_by_name(make: Make) -> None:
    table = make()
    path = table.kinds["index manifest"]
    elsewhere = f"file:{table.outside / table.kinds['hash index'].name}"
    entries = decode_index_manifest(path.read_bytes(), "index manifest")
    moved = [replace(entry, file=replace(entry.file, external_path=elsewhere)) for entry in entries]
    path.write_bytes(encode_index_manifest(moved))
    (error,) = table.refused("write")
    assert isinstance(error, UnsupportedFeatureError) and elsewhere in str(error)


@pytest.mark.parametrize(
    "options",
    [
        {"data-file.external-paths": "file:///{outside}"},
        {"data-file.path-directory": "../../outside"},
        {"data-file.prefix": "../../../outside/"},
        {"changelog-file.prefix": "/{outside}/x-"},
        {"branch": "../../outside"},
        {"path": "{outside}"},
        {"partition.default-name": "../../../outside"},
        {"index-file-in-data-file-dir": "true"},
        {"global-index.external-path": "file:///{outside}"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_no_option_leads_out_of_the_table(make: Make, options: dict[str, str]) -> None:
    table = make()
    path = table.kinds["schema"]
    document = json.loads(path.read_bytes())
    for key, text in options.items():
        document["options"][key] = text.format(outside=table.outside)
    path.write_text(json.dumps(document))
    outcomes = table.judge(keeps_rows=True)
    harmless = {"path", "partition.default-name"}
    if not harmless & set(options):
        assert all(next(iter(options)) in str(error) for error in outcomes.values()), outcomes


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # The length of a socket's path is limited.
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 42)


#: Replacements of a file.
REPLACEMENTS: dict[str, Callable[[Path, Path], object]] = {
    "FIFO": lambda path, outside: os.mkfifo(path),
    "directory": lambda path, outside: path.mkdir(),
    "socket": lambda path, outside: _socket(path),
    "endless device": lambda path, outside: path.symlink_to("/dev/zero"),
    "link out": lambda path, outside: path.symlink_to(outside / path.name),
    "link to nothing": lambda path, outside: path.symlink_to(outside / "nothing"),
    "link to itself": lambda path, outside: path.symlink_to(path.name),
    "sparse file of 4 TB": lambda path, outside: _sparse(path),
}

#: Operations that do not need a kind of file.
NOT_NEEDED = {
    "latest hint": {"read", "write", "compact"},
    "tag": {"read", "write", "compact"},
    "hash index": {"read", "compact"},
    "data file": {"write"},
}


@pytest.mark.parametrize("replacement", REPLACEMENTS)
@pytest.mark.parametrize(
    "kind",
    ["schema", "snapshot", "latest hint", "tag", "base list", "manifest", "index manifest", "data file", "hash index"],
)
def test_a_replacement_of_a_file_is_neither_opened_nor_waited_for(make: Make, kind: str, replacement: str) -> None:
    table = make()
    path = table.kinds[kind]
    path.unlink()
    REPLACEMENTS[replacement](path, table.outside)
    outcomes = table.judge("read", "read a tag", "write", "compact", keeps_rows=True)
    for operation, error in outcomes.items():
        if error is not None:
            assert operation not in NOT_NEEDED.get(kind, ()), error
    if kind not in NOT_NEEDED and "nothing" not in replacement:
        assert outcomes["read"] is not None and str(path) in str(outcomes["read"])


@examples(10)
@given(draw=st.data())
def test_any_replacements_of_files_and_directories_are_survived(make: Make, draw: st.DataObject) -> None:
    table = make()
    everything = sorted(path.relative_to(table.root) for path in table.root.rglob("*"))
    for name in draw.draw(st.lists(st.sampled_from(everything), min_size=1, max_size=3, unique=True)):
        path = table.root / name
        if path.is_symlink() or not path.exists():
            continue  # Its directory was replaced.
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        REPLACEMENTS[draw.draw(st.sampled_from(sorted(REPLACEMENTS)))](path, table.outside)
    outcomes = table.judge()
    event(f"{sum(error is not None for error in outcomes.values())} refused")


@pytest.mark.parametrize("name", ["schema", "snapshot", "manifest", "index", "p=a", "p=a/bucket-0", "tag"])
def test_a_directory_that_links_outside_is_neither_read_nor_written(make: Make, name: str) -> None:
    table = make()
    directory = table.root / name
    directory.rename(table.root / "moved")
    directory.symlink_to(table.outside)
    table.judge(keeps_rows=True)
    if name not in ("index", "tag"):
        table.refused("read", "compact")
    if name not in ("tag", "p=a/bucket-0"):
        table.refused("write")


@pytest.mark.parametrize("name", ["manifest", "p=a", "index", "snapshot"])
def test_a_link_within_the_table_is_followed(make: Make, name: str) -> None:
    table = make()
    (table.root / name).rename(table.root / "moved")
    (table.root / name).symlink_to("moved")
    assert set(table.judge(keeps_rows=True).values()) == {None}


def test_a_warehouse_that_is_a_link_is_followed(make: Make, tmp_path: Path) -> None:
    table = make()
    (tmp_path / "link").symlink_to(table.root.parent)
    linked = HostileTable(tmp_path / "link" / "t", table.outside)
    assert set(linked.judge(keeps_rows=True).values()) == {None}


@pytest.mark.parametrize("text", [b"9" * 63, b"9" * 10_000, b"-1", b"\xff", b"", b"../../x", b"1e3", "٣".encode()])
def test_a_hint_that_is_not_a_number_is_ignored(make: Make, text: bytes) -> None:
    table = make()
    table.kinds["latest hint"].write_bytes(text)
    assert set(table.judge("read", "write", keeps_rows=True).values()) == {None}


def test_all_operations_succeed_on_an_undamaged_table(make: Make) -> None:
    table = make()
    assert set(table.judge(keeps_rows=True).values()) == {None}
    assert NEW_ROW in LocalTable(table.root).rows()
