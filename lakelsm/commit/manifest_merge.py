"""The merge of manifests in a commit (docs/format.md 11.2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lakelsm.errors import CorruptTableError
from lakelsm.format.manifest import EntryIdentity, FileKind, ManifestEntry, ManifestFileMeta
from lakelsm.options import TableOptions
from lakelsm.snapshots.manifest_prune import select_manifests
from lakelsm.types import DataType

ReadManifest = Callable[[ManifestFileMeta], list[ManifestEntry]]
WriteManifests = Callable[[Sequence[ManifestEntry]], list[ManifestFileMeta]]


@dataclass(frozen=True)
class MergePolicy:
    """The options ``manifest.target-file-size``, ``.merge-min-count`` and ``.full-compaction-threshold-size`` (bytes)."""

    target_size: int
    min_count: int
    full_threshold: int

    @staticmethod
    def of(options: TableOptions) -> MergePolicy:
        """Return the policy of a table."""
        return MergePolicy(
            options.manifest_target_file_size,
            options.manifest_merge_min_count,
            options.manifest_full_compaction_threshold_size,
        )


def merge_manifests(
    metas: Sequence[ManifestFileMeta],
    policy: MergePolicy,
    read: ReadManifest,
    write: WriteManifests,
    partition_types: Sequence[DataType],
) -> list[ManifestFileMeta]:
    """Return the manifests of the next base list: ``metas`` unchanged if no merge is due.

    REQUIRES: ``metas`` are all manifests of one snapshot in order. The live files stay the same; ``read`` is called for
    merged manifests only.
    """
    if needs_full_merge(metas, policy):
        merged = _merge_fully(metas, policy, read, write, partition_types)
        if merged is not None:
            return merged
    result: list[ManifestFileMeta] = []
    for group in plan_minor_merge(metas, policy):
        if len(group) == 1:
            result += group
        else:
            entries = cancel(entry for meta in group for entry in read(meta))
            result += write(entries)
    return result


def must_change(meta: ManifestFileMeta, policy: MergePolicy) -> bool:
    """Return whether a full merge must rewrite a manifest: it has deletes, or is smaller than the target size."""
    return meta.num_deleted_files > 0 or meta.file_size < policy.target_size


def needs_full_merge(metas: Sequence[ManifestFileMeta], policy: MergePolicy) -> bool:
    """Return whether the manifests that must change have reached the threshold of a full merge."""
    return sum(meta.file_size for meta in metas if must_change(meta, policy)) >= policy.full_threshold


def plan_minor_merge(metas: Sequence[ManifestFileMeta], policy: MergePolicy) -> list[tuple[ManifestFileMeta, ...]]:
    """Return consecutive groups of manifests; each becomes one manifest, and a group of one is kept unchanged.

    A group ends when it reaches the target size; the rest is merged if it has the minimum count. Unlike Java, a manifest
    that is larger than all later ones of its group together is left out: to rewrite it for a few small ones would make
    the cost of one commit in ``min_count`` grow with the number of files in the table.
    """
    groups: list[tuple[ManifestFileMeta, ...]] = []
    waiting: list[ManifestFileMeta] = []
    size = 0
    for meta in metas:
        waiting.append(meta)
        size += meta.file_size
        if size < policy.target_size:
            continue
        kept, waiting = _leave_out_large(waiting)
        groups += [(other,) for other in kept]
        if not kept:
            groups.append(tuple(waiting))
            waiting = []
        size = sum(other.file_size for other in waiting)
    kept, waiting = _leave_out_large(waiting)
    groups += [(other,) for other in kept]
    if len(waiting) >= policy.min_count:
        groups.append(tuple(waiting))
    else:
        groups += [(other,) for other in waiting]
    return groups


def _leave_out_large(metas: Sequence[ManifestFileMeta]) -> tuple[list[ManifestFileMeta], list[ManifestFileMeta]]:
    """Split off the first manifests that are larger than all later ones together."""
    rest = sum(meta.file_size for meta in metas)
    for position, meta in enumerate(metas):
        rest -= meta.file_size
        if meta.file_size <= rest:
            return list(metas[:position]), list(metas[position:])
    return list(metas), []


def cancel(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Drop each ADD with its later DELETE. A DELETE whose ADD is not among the entries is kept.

    Raises CorruptTableError if a file is added twice.
    """
    kept: dict[EntryIdentity, ManifestEntry] = {}
    for entry in entries:
        identity = entry.identity
        known = kept.get(identity)
        if entry.kind == FileKind.ADD:
            if known is not None:
                raise CorruptTableError(f"The manifests add data file {entry.file.file_name} twice. Restore them.")
            kept[identity] = entry
        elif known is not None and known.kind == FileKind.ADD:
            del kept[identity]
        else:
            kept[identity] = entry
    return list(kept.values())


def _merge_fully(
    metas: Sequence[ManifestFileMeta],
    policy: MergePolicy,
    read: ReadManifest,
    write: WriteManifests,
    partition_types: Sequence[DataType],
) -> list[ManifestFileMeta] | None:
    """Apply all DELETE entries and rewrite the manifests that must change; None if at most one is concerned.

    Full manifests without a deleted file come before the rewritten ones.
    """
    held: dict[str, list[ManifestEntry]] = {meta.file_name: read(meta) for meta in metas if meta.num_deleted_files > 0}
    deleted = {entry.identity for entries in held.values() for entry in entries if entry.kind == FileKind.DELETE}
    buckets: dict[bytes, set[int]] = defaultdict(set)
    for partition, bucket, *_ in deleted:
        buckets[partition].add(bucket)
    full = [meta for meta in metas if not must_change(meta, policy)]
    concerned = {meta.file_name for meta in select_manifests(full, buckets, partition_types)}
    kept = [meta for meta in full if meta.file_name not in concerned]
    merging = [meta for meta in metas if must_change(meta, policy) or meta.file_name in concerned]
    if len(merging) <= 1:
        return None
    rewritten: list[ManifestEntry] = []
    for meta in merging:
        entries = held.pop(meta.file_name, None) or read(meta)
        live = [e for e in entries if e.kind == FileKind.ADD and e.identity not in deleted]
        if len(live) == len(entries) and not must_change(meta, policy):
            kept.append(meta)
        else:
            rewritten += live
    return kept + write(rewritten)
