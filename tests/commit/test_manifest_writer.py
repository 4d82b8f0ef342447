"""The metadata files of one commit: sizes, names, checksums, and the deletion of unused ones."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from lakelsm.commit.manifest_writer import ManifestFiles, rolled
from lakelsm.format.index.index_manifest import decode_index_manifest
from lakelsm.format.manifest import decode_manifest, decode_manifest_list, encode_manifest
from lakelsm.options import TableOptions
from tests.commit.commit_table import CommitTable, add, delete, file, hash_index


def test_rolled_parts_reach_the_target_except_the_last() -> None:
    entries = [add(file(f"data-{i * 7919 % 10007}")) for i in range(1000)]
    parts = list(rolled(entries, encode_manifest, 2_000))
    assert [entry for part, _ in parts for entry in part] == entries
    assert len(parts) > 2
    assert all(len(data) >= 2_000 for _, data in parts[:-1])
    assert len(list(rolled(entries, encode_manifest, 10_000_000))) == 1
    assert list(rolled([], encode_manifest, 10)) == []


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 400))
def test_all_parts_but_the_last_reach_the_target_whatever_the_sizes(sizes: list[int], target: int) -> None:
    """Encode entries of known sizes: a part has the sum of their bytes."""
    entries: Any = sizes
    parts = list(rolled(entries, lambda part: bytes(sum(cast("Any", part))), target))
    assert [size for part, _ in parts for size in part] == sizes
    assert all(len(part) > 0 and len(data) == sum(part) for part, data in parts)
    assert all(len(data) >= target for _, data in parts[:-1])
    if 0 < sum(sizes) < 2 * target:
        assert len(parts) == 1, "one part of up to twice the target is better than a full and a small one"


def test_parts_of_even_entries_are_barely_above_the_target_and_encoded_once_each() -> None:
    calls = []

    def encode(part: Any) -> bytes:
        calls.append(len(part))
        return bytes(10 * len(part))

    entries: Any = list(range(1_000))
    parts = list(rolled(entries, encode, 1_000))
    assert [len(part) for part, _ in parts] == [102] * 9 + [82]
    assert calls == [1_000, *(len(part) for part, _ in parts)], "the sample, then each part"


def manifest_files(table: CommitTable, target_size: int = 1 << 20) -> ManifestFiles:
    options = TableOptions.parse({**table.schema.options, "manifest.target-file-size": f"{target_size} b"})
    return ManifestFiles(replace(table.store, options=options), "u")


def test_written_files_read_back_and_have_checksums(table: CommitTable) -> None:
    files, entries, index = manifest_files(table), [add(file("a")), delete(add(file("b"), dt="b"))], [hash_index("i")]
    [meta] = files.write_manifests(entries)
    name, size = files.write_list([meta])
    index_name = files.write_index(index)
    assert (meta.file_name, name, index_name) == ("manifest-u-0", "manifest-list-u-0", "index-manifest-u-0")
    assert (meta.num_added_files, meta.num_deleted_files, meta.partition_stats.null_counts) == (1, 1, (0,))
    stored = {name: table.file_io.read(table.paths.manifest(name)) for name in (meta.file_name, name, index_name)}
    assert decode_manifest(stored[meta.file_name], "m") == entries
    assert decode_manifest_list(stored[name], "l") == [meta]
    assert decode_index_manifest(stored[index_name], "i") == index
    assert (meta.file_size, size) == (len(stored[meta.file_name]), len(stored[name]))
    assert {name: files.checksum(name) for name in stored} == {name: zlib.crc32(data) for name, data in stored.items()}
    assert meta.checksum == zlib.crc32(stored[meta.file_name]) and files.checksum("manifest-of-another") is None


def test_entries_go_to_several_manifests_in_their_order(table: CommitTable) -> None:
    entries = [add(file(f"data-{at * 7919 % 10007}")) for at in range(400)]
    metas = manifest_files(table, 2_000).write_manifests(entries)
    names = [meta.file_name for meta in metas]
    assert len(names) > 2 and names == [f"manifest-u-{at}" for at in range(len(names))]
    found = [entry for name in names for entry in decode_manifest(table.file_io.read(table.paths.manifest(name)), name)]
    assert found == entries


def test_only_files_that_no_snapshot_names_are_deleted(table: CommitTable) -> None:
    table.append(add())
    others, files = table.metadata_names(), manifest_files(table)
    used, unused = files.write_index([hash_index("i")]), files.write_index([hash_index("j")])
    files.delete_except([used, None])
    assert table.metadata_names() == others | {used}
    table.file_io.write(table.paths.manifest(unused), b"of another writer")
    files.delete_except()
    assert table.metadata_names() == others | {unused}
