"""Hand-made deletion vectors: commits that mask rows of live files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyroaring import BitMap

from lakelsm.commit.commit_message import CommitMessage
from lakelsm.commit.committer import Committer
from lakelsm.format.index.deletion_vector_file import encode_vectors
from lakelsm.format.index.index_manifest import (
    DELETION_VECTORS_INDEX,
    IndexFileMeta,
    IndexManifestEntry,
    encode_index_manifest,
)
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.snapshots.manifest_scan import read_live_entries
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable

_names = itertools.count()


def index_entry(
    root: Path, vectors: Mapping[str, Iterable[int]], partition: bytes, bucket: int, bitmap64: bool = False
) -> IndexManifestEntry:
    """Write an index file of vectors by data file name. Return its entry."""
    data, ranges = encode_vectors({name: BitMap(rows) for name, rows in vectors.items()}, bitmap64)
    name = f"index-masks-{next(_names)}"
    path = root / "index" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    meta = IndexFileMeta(DELETION_VECTORS_INDEX, name, len(data), len(vectors), dv_ranges=ranges)
    return IndexManifestEntry(FileKind.ADD, partition, bucket, meta)


def commit_vectors(store: TableStore, *entries: IndexManifestEntry, files: Iterable[ManifestEntry] = ()) -> Snapshot:
    """Commit index files, and changes of data files, as a compaction does."""
    message = CommitMessage(list(files), index_adds=list(entries), base_snapshot_id=store.snapshots.latest_id())
    outcome = Committer(store).commit(CommitKind.COMPACT, message, "masks")
    assert outcome.snapshot is not None
    return outcome.snapshot


def with_index_files(table: CommitTable, *entries: IndexManifestEntry) -> None:
    """Give the newest snapshot an index manifest that no commit of lakelsm would write."""
    path = table.root / "manifest" / "index-manifest-theirs"
    path.write_bytes(encode_index_manifest(entries))
    table.rewrite(table.snapshots.latest_id() or 0, index_manifest=path.name)


def mask(store: TableStore, vectors: Mapping[str, Iterable[int]]) -> Snapshot:
    """Commit vectors of live files, by name: one index file for each bucket."""
    latest = store.snapshots.latest()
    assert latest is not None
    buckets: dict[tuple[bytes, int], dict[str, Iterable[int]]] = {}
    for entry in read_live_entries(store.file_io, store.paths, latest):
        if entry.file.file_name in vectors:
            found = buckets.setdefault((entry.partition, entry.bucket), {})
            found[entry.file.file_name] = vectors[entry.file.file_name]
    root = Path(store.paths.root)
    return commit_vectors(store, *(index_entry(root, found, *bucket) for bucket, found in buckets.items()))
