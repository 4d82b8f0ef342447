"""The groups of files of one batch: how many fit, and how they are packed into parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakelsm.lsm.splits import pack_in_order
from lakelsm.options import TableOptions
from lakelsm.plan.bucket_files import BucketId
from lakelsm.stream.feed_part import FeedPart
from lakelsm.stream.snapshot_files import FileGroup
from lakelsm.stream.stream_limits import StreamLimits


class BatchSize:
    """The files, bytes and rows of a batch. The first group is admitted in any case."""

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self.files = 0
        self.size = 0
        self.rows = 0
        #: Whether a group was too much.
        self.is_full = False

    def admit(self, group: FileGroup, reads: bool) -> bool:
        """Add a group, unless it is too much. A group that the batch does not read (``reads``) needs nothing."""
        return not reads or self.admit_all([group])

    def admit_all(self, groups: Sequence[FileGroup]) -> bool:
        """Add groups, unless they are too much together."""
        files = self.files + sum(group.files for group in groups)
        size = self.size + sum(group.size for group in groups)
        rows = self.rows + sum(group.rows for group in groups)
        if self.files and groups and not self._limits.admits(files, size, rows):
            self.is_full = True
            return False
        self.files, self.size, self.rows = files, size, rows
        return True


def packed_parts(
    options: TableOptions, rows: Sequence[FileGroup], changes: Sequence[FileGroup], cores: int = 1
) -> list[FeedPart]:
    """Return the parts of a batch: at most about ``source.split.target-size`` bytes each, and work for some ``cores``.

    All changes of a bucket are in one part, in their order and after the loaded ``rows`` of the bucket. Rows of buckets
    without changes may be in several parts, because no two groups have a key in common.
    """
    by_bucket: dict[BucketId, list[FileGroup]] = {}
    changed = {group.bucket for group in changes}
    work: list[list[FileGroup]] = []
    for group in rows:
        if group.bucket in changed:
            by_bucket.setdefault(group.bucket, []).append(group)
        else:
            work.append([group])
    for group in changes:
        by_bucket.setdefault(group.bucket, []).append(group)
    work += [by_bucket[bucket] for bucket in sorted(by_bucket)]
    min_size = options.source_split_open_file_cost

    def weight(groups: Iterable[FileGroup]) -> int:
        return sum(max(group.size, group.files * min_size) for group in groups)

    # As Spark divides scans: otherwise one of two tasks has three of four buckets.
    share = max(min_size, -(-sum(map(weight, work)) // cores))
    packed = pack_in_order(work, weight, min(options.source_split_target_size, share))
    return [_part([group for groups in part for group in groups]) for part in packed]


def _part(groups: Sequence[FileGroup]) -> FeedPart:
    return FeedPart(
        tuple(unit for group in groups for unit in group.make()),
        files=sum(group.files for group in groups),
        size=sum(group.size for group in groups),
        rows=sum(group.rows for group in groups),
    )
