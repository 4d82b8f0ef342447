"""Manifests as a check reads them. Each is read once, and only a digest of its entries is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import LakelsmError
from lakelsm.format.file_names import refuse_external_path
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.manifest.manifest_file import EntryBatch, open_manifests
from lakelsm.format.manifest.manifest_list import ManifestFileMeta
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.rules import (
    CHANGELOG_DELETED,
    CHANGELOG_FILE_MISSING,
    CHANGELOG_FILE_SIZE,
    DATA_FILE_MISSING,
    DATA_FILE_SIZE,
    FILE_ENTRY,
    FILE_INDEX_MISSING,
    MANIFEST_COUNTS,
    MANIFEST_RANGES,
    MANIFEST_UNREADABLE,
)
from lakelsm.merge.key_order import order_keys
from lakelsm.plan.bucket_files import BucketId
from lakelsm.snapshots.manifest_scan import read_metadata
from lakelsm.snapshots.table_store import TableStore

Longs: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class SuspectFile:
    """A file that an entry adds, and that the listing of its directory does not show, or shows with another size.

    ``size``: the size in the entry (None for an extra file). ``problem``: why the file was not looked for.
    """

    identity: int
    directory: str
    name: str
    size: int | None = None
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class ManifestDigest:
    """The parts of a manifest that a check keeps: hashes of added and deleted identities, and the values in lists.

    ``rows``: rows of added files minus rows of deleted files.
    """

    added: Longs
    deleted: Longs
    rows: int
    suspects: Sequence[SuspectFile]
    partitions: Mapping[bytes, int]
    buckets: tuple[int, int]
    levels: tuple[int, int]


class Manifests:
    """Reads the manifests of one branch and checks each of them."""

    def __init__(self, store: TableStore, stored: StoredFiles, findings: Findings) -> None:
        self._store = store
        self._stored = stored
        self._findings = findings
        self._digests: dict[str, ManifestDigest | None] = {}
        self._checked: dict[str, list[ManifestFileMeta]] = {}

    @property
    def count(self) -> int:
        """The number of manifests read."""
        return len(self._digests)

    def digest(self, meta: ManifestFileMeta, owner: str, changelog: bool = False) -> ManifestDigest | None:
        """Return the digest of a manifest that a list of ``owner`` names; None, with a finding, if it is unreadable."""
        if meta.file_name not in self._digests:
            self.opened(meta, owner, changelog)
        digest = self._digests[meta.file_name]
        if digest is not None:
            self._check(meta, digest, owner)
        return digest

    def opened(self, meta: ManifestFileMeta, owner: str, changelog: bool = False) -> list[EntryBatch]:
        """Return the entries of a manifest; nothing if it is unreadable."""
        path = self._store.paths.manifest(meta.file_name)
        known = self._digests.get(meta.file_name)
        if meta.file_name in self._digests and known is None:
            return []
        try:
            data = read_metadata(self._store.file_io, path, "a manifest list", meta.file_size, meta.checksum)
            batches = open_manifests([(data, path, None)])
            if known is None:
                self._digests[meta.file_name] = self._digested(batches, changelog, path, owner)
        except (LakelsmError, OSError) as error:
            self._digests[meta.file_name] = None
            self._findings.add(MANIFEST_UNREADABLE, path, str(error), owner)
            return []
        return batches

    def report_suspects(
        self, digests: Iterable[ManifestDigest], live: Longs | None, owner: str, changelog: bool = False
    ) -> None:
        """Report added files that are missing or have another size. ``live``: report only these files; None: all."""
        suspects = [file for digest in digests for file in digest.suspects]
        if live is not None and suspects:
            here = np.isin(np.array([file.identity for file in suspects], np.int64), live)
            suspects = [file for file, is_live in zip(suspects, here.tolist()) if is_live]
        for file in suspects:
            self._report(file, f"{file.directory}/{file.name}", owner, changelog)

    def _report(self, file: SuspectFile, path: str, owner: str, changelog: bool) -> None:
        if file.problem:
            self._findings.add(FILE_ENTRY, path, file.problem, owner)
            return
        found: int | None
        try:  # Listings may be older than the file, and show the size of a link instead of its file.
            found = self._store.file_io.size(path)
        except (LakelsmError, OSError):
            found = None
        if found is not None and file.size in (found, None):
            return
        if file.size is None:
            rule, problem = FILE_INDEX_MISSING, "an extra file of a data file that the table names does not exist"
        elif found is None:
            rule = CHANGELOG_FILE_MISSING if changelog else DATA_FILE_MISSING
            problem = "it does not exist, but the table names it"
        else:
            rule = CHANGELOG_FILE_SIZE if changelog else DATA_FILE_SIZE
            problem = f"it has {found} bytes, but its manifest entry says {file.size}"
        self._findings.add(rule, path, problem, owner)

    def _digested(self, batches: Sequence[EntryBatch], changelog: bool, path: str, owner: str) -> ManifestDigest:
        added, deleted, suspects = [np.empty(0, np.int64)], [np.empty(0, np.int64)], []
        partitions: Counter[bytes] = Counter()
        buckets, levels = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        rows = 0
        for batch in batches:
            rows_of_batch = np.arange(batch.count)
            counts = batch.counts(rows_of_batch)
            adds = batch.kinds == FileKind.ADD
            identities = np.fromiter(map(hash, batch.identities(rows_of_batch)), np.int64, batch.count)
            added.append(identities[adds])
            deleted.append(identities[~adds])
            rows += int(counts.rows[adds].sum() - counts.rows[~adds].sum())
            buckets.append(batch.buckets)
            levels.append(counts.levels)
            for code, count in enumerate(np.bincount(batch.partition_codes, minlength=len(batch.partitions)).tolist()):
                partitions[batch.partitions[code]] += count
            if changelog and not adds.all():
                self._findings.add(CHANGELOG_DELETED, path, f"it deletes {int((~adds).sum())} files", owner)
            entries = batch.entries(np.flatnonzero(adds), stats=False)
            suspects += self._suspects(entries, identities[adds].tolist())
        return ManifestDigest(
            added=np.concatenate(added),
            deleted=np.concatenate(deleted),
            rows=rows,
            suspects=suspects,
            partitions=partitions,
            buckets=_range(np.concatenate(buckets)),
            levels=_range(np.concatenate(levels)),
        )

    def _suspects(self, entries: Sequence[ManifestEntry], identities: Sequence[int]) -> list[SuspectFile]:
        """Return the files of entries that their directory does not list, or lists with another size."""
        suspects = []
        for entry, identity in zip(entries, identities):
            file = entry.file
            try:
                refuse_external_path(file.external_path, file.file_name)
                directory = self._stored.bucket_dir(entry.partition, entry.bucket)
                found = self._stored.size(directory, file.file_name)
            except LakelsmError as error:
                bucket = f"bucket {entry.bucket}"
                suspects.append(SuspectFile(identity=identity, directory=bucket, name=file.file_name, problem=str(error)))
                continue
            if found != file.file_size:
                size = file.file_size
                suspects.append(SuspectFile(identity=identity, directory=directory, name=file.file_name, size=size))
            for name in file.extra_files:
                if self._stored.size(directory, name) is None:
                    suspects.append(SuspectFile(identity=identity, directory=directory, name=name))
        return suspects

    def _check(self, meta: ManifestFileMeta, digest: ManifestDigest, owner: str) -> None:
        """Compare what a list records of a manifest with its content. Equal records of several lists are checked once."""
        checked = self._checked.setdefault(meta.file_name, [])
        if meta in checked:
            return
        checked.append(meta)
        path = self._store.paths.manifest(meta.file_name)
        recorded, found = (meta.num_added_files, meta.num_deleted_files), (len(digest.added), len(digest.deleted))
        if recorded != found:
            self._findings.add(
                MANIFEST_COUNTS,
                path,
                f"it adds {found[0]} files and deletes {found[1]}, but a list of {owner} says {recorded[0]} and "
                f"{recorded[1]}",
                owner,
            )
        if sum(found) == 0:
            return
        for what, low, high, actual in (
            ("buckets", meta.min_bucket, meta.max_bucket, digest.buckets),
            ("levels", meta.min_level, meta.max_level, digest.levels),
        ):
            if low is not None and high is not None and not low <= actual[0] <= actual[1] <= high:
                problem = f"it has {what} {actual[0]} to {actual[1]}, but a list of {owner} says {low} to {high}"
                self._findings.add(MANIFEST_RANGES, path, problem, owner)
        with self._findings.errors_as(MANIFEST_RANGES, path, owner):
            column = self._column_out_of_bounds(meta, digest)
            if column is not None:
                problem = f"it has partitions outside the bounds of {column!r} in a list of {owner}"
                self._findings.add(MANIFEST_RANGES, path, problem, owner)

    def _column_out_of_bounds(self, meta: ManifestFileMeta, digest: ManifestDigest) -> str | None:
        """Return a partition column of which a manifest has values outside the bounds in its list."""
        types = self._store.partition_types
        stats = meta.partition_stats
        if not types:
            return None
        columns = decode_rows([stats.min_values, stats.max_values, *digest.partitions], types)
        for name, column in zip(self._store.schema.partition_keys, columns):
            known = column.is_valid().to_numpy(zero_copy_only=False)
            if known[:2].all() and _leaves_out(column, known):
                return name
            if known[2:].any() and not known[:2].any():
                return name  # The bounds are NULL, so every entry should have NULL.
        return None


def live_files(digests: Sequence[ManifestDigest]) -> Longs:
    """Return the hashes of the identities of the live files: added by the manifests, and not deleted."""
    added = np.concatenate([np.empty(0, np.int64), *(digest.added for digest in digests)])
    deleted = np.concatenate([np.empty(0, np.int64), *(digest.deleted for digest in digests)])
    return added[~np.isin(added, deleted)] if len(deleted) else added


def _leaves_out(column: pa.Array, known: npt.NDArray[np.bool_]) -> bool:
    """Return whether the first two values of a column, its bounds, leave out one of the other values."""
    order = order_keys([column.filter(pa.array(known))], signed_zeros=True)
    return len(order) > 2 and bool((order[2:] < order[0]).any() or (order[2:] > order[1]).any())


def _range(values: Longs) -> tuple[int, int]:
    return (int(values.min()), int(values.max())) if len(values) else (0, 0)


class StoredFiles:
    """Sizes of files by directory and name. Each directory is listed once."""

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._sizes: dict[str, Mapping[str, int]] = {}
        self._buckets: dict[BucketId, str] = {}

    def bucket_dir(self, partition: bytes, bucket: int) -> str:
        """Return the directory of a bucket. Raises the errors of `TablePaths.bucket_dir`."""
        known = self._buckets.get((partition, bucket))
        if known is None:
            known = self._store.paths.bucket_dir(self._store.partition_text(partition), bucket)
            self._buckets[(partition, bucket)] = known
        return known

    def size(self, directory: str, name: str) -> int | None:
        """Return the size of a file in bytes; None if its directory does not list it as a file."""
        known = self._sizes.get(directory)
        if known is None:
            entries = self._store.file_io.entries(directory)
            known = self._sizes[directory] = {entry.name: entry.size for entry in entries if not entry.is_directory}
        return known.get(name)
