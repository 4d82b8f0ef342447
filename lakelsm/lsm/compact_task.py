"""Plans the work on each file of a unit: a compaction rewrites it, upgrades it, or leaves it unchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

from lakelsm.lsm.interval_partition import Section, interval_partition
from lakelsm.lsm.levels import FileRange, SortedRun, highest_level
from lakelsm.lsm.universal_compaction import CompactUnit


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """Adjacent sections in key order whose rows are merged and written together to the output level."""

    sections: tuple[Section, ...]

    @property
    def files(self) -> tuple[FileRange, ...]:
        """All input files of the group."""
        return tuple(file for section in self.sections for file in section.files)


@dataclass(frozen=True, slots=True)
class CompactPlan:
    """The decision for each file of a unit.

    `upgrades` only change their level. `rewrites` are merged and replaced. `untouched` are already on the output level.
    With `drop_delete` merged rows that are retractions are not written. `below` are the bucket's runs below the output,
    lowest level first. `reason` is the reason of the unit.
    """

    output_level: int
    drop_delete: bool
    _: KW_ONLY
    upgrades: tuple[FileRange, ...]
    rewrites: tuple[RewriteGroup, ...]
    untouched: tuple[FileRange, ...] = ()
    below: tuple[SortedRun, ...] = ()
    reason: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the plan changes no file."""
        return not self.upgrades and not self.rewrites


def min_compaction_file_size(target_file_size: int, small_file_ratio: float) -> int:
    """Return the size in bytes below which a file is small: `target-file-size` times `compaction.small-file-ratio`."""
    return int(target_file_size * small_file_ratio)


def drops_deletes(output_level: int, runs: Sequence[SortedRun], *, deletion_vectors: bool = False) -> bool:
    """Return whether a compaction to `output_level` may leave retractions out. `runs` are all runs of the bucket.

    This is correct only if the files below the output contain no older row of a key: the output level is not 0, and it
    is at least the highest non-empty level of the bucket, or deletion vectors mask the older rows already.
    """
    return output_level != 0 and (output_level >= highest_level(runs) or deletion_vectors)


def plan_compaction(
    unit: CompactUnit,
    *,
    max_level: int,
    min_file_size: int,
    drop_delete: bool,
    must_rewrite: Callable[[FileRange], bool] | None = None,
) -> CompactPlan:
    """Decide what happens to each file of a unit.

    The sections of the unit are visited in key order. Overlapping files and small files (less than `min_file_size`
    bytes) are collected in a group. A large file that overlaps no other ends the group and is upgraded alone. A group
    of a single file is also upgraded instead of rewritten. An upgraded file is rewritten nevertheless if the output
    is `max_level` (the top of the bucket) and the file may contain retractions, or if `must_rewrite` returns true
    (expired rows, a forced rewrite). A unit with `file_rewrite` rewrites every file alone.
    """
    planner = _Planner(unit.output_level, max_level, must_rewrite)
    if unit.file_rewrite:
        for file in unit.files:
            planner.rewrite([_single(file)])
        return planner.plan(drop_delete)
    group: list[Section] = []
    for section in interval_partition(unit.files):
        if len(section.runs) > 1:
            group.append(section)
            continue
        for file in section.runs[0]:
            if file.size < min_file_size:
                group.append(_single(file))
            else:
                planner.finish(group)
                group = []
                planner.move_up(file)
    planner.finish(group)
    return planner.plan(drop_delete)


def _single(file: FileRange) -> Section:
    return Section(((file,),))


class _Planner:
    """Collects the decisions of one unit."""

    def __init__(
        self, output_level: int, max_level: int, must_rewrite: Callable[[FileRange], bool] | None
    ) -> None:
        self._output_level = output_level
        self._to_top = output_level == max_level
        self._must_rewrite = must_rewrite
        self._upgrades: list[FileRange] = []
        self._rewrites: list[RewriteGroup] = []
        self._untouched: list[FileRange] = []

    def move_up(self, file: FileRange) -> None:
        if (self._to_top and file.may_hold_deletes) or (
            self._must_rewrite is not None and self._must_rewrite(file)
        ):
            self.rewrite([_single(file)])
        elif file.level != self._output_level:
            self._upgrades.append(file)
        else:
            self._untouched.append(file)

    def finish(self, group: list[Section]) -> None:
        if len(group) == 1 and len(group[0].runs) == 1:
            for file in group[0].runs[0]:
                self.move_up(file)
        elif group:
            self.rewrite(group)

    def rewrite(self, group: list[Section]) -> None:
        self._rewrites.append(RewriteGroup(tuple(group)))

    def plan(self, drop_delete: bool) -> CompactPlan:
        return CompactPlan(
            self._output_level,
            drop_delete,
            upgrades=tuple(self._upgrades),
            rewrites=tuple(self._rewrites),
            untouched=tuple(self._untouched),
        )
