"""Divides the compaction plan of a bucket into units of one task each, and decides which of them write a changelog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakelsm.lsm.interval_partition import Section
from lakelsm.lsm.splits import pack_in_order
from lakelsm.lsm.upgrade_strategy import UpgradeStrategy, upgrade_strategy
from lakelsm.merge.changelog import ChangelogRule, ChangelogSource
from lakelsm.merge.merge_unit import MergeUnit
from lakelsm.options import ChangelogProducer, MergeEngine, TableOptions
from lakelsm.plan.compaction_plan import BucketCompaction, CompactionPlan
from lakelsm.plan.merge_units import MergeUnits
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore

_SOURCES = {
    ChangelogProducer.LOOKUP: ChangelogSource.LOOKUP,
    ChangelogProducer.FULL_COMPACTION: ChangelogSource.TOP_LEVEL,
}


@dataclass(frozen=True, kw_only=True)
class RewriteUnit:
    """Sections in key order whose merged rows are written to one stream of files.

    ``looks_up``: the sections include level 0, and rows below the output take part in the merge. ``changelog``: changes
    are recorded. ``masks``: rows below the output whose keys are on level 0 are masked; without ``looks_up`` it is
    enough to find their keys. Without ``writes_data`` no data is written, because the files are upgraded.
    """

    sections: tuple[MergeUnit, ...]
    partition: bytes
    bucket: int
    total_buckets: int
    directory: str
    output_level: int
    drop_delete: bool
    looks_up: bool = False
    changelog: bool = False
    masks: bool = False
    writes_data: bool = True

    @property
    def has_effect(self) -> bool:
        """Whether the unit writes anything, or masks rows of some file."""
        return self.writes_data or self.changelog or (self.masks and any(part.looked_up for part in self.sections))


def changelog_rule(schema: TableSchema, options: TableOptions) -> ChangelogRule | None:
    """Return which changes compactions of a table record; None if they record none."""
    source = _SOURCES.get(options.changelog_producer)
    if source is None:
        return None
    if not options.changelog_producer_row_deduplicate:
        return ChangelogRule(source)
    ignored = options.changelog_producer_row_deduplicate_ignore_fields
    return ChangelogRule(source, tuple(name for name in schema.field_names if name not in ignored))


def rewrite_units(
    store: TableStore, plan: CompactionPlan, bucket: BucketCompaction, changelog: bool
) -> Iterator[RewriteUnit]:
    """Yield the rewrites of a bucket as units; a group is split when it reaches the target file size.

    Files that are only upgraded also have a unit if their rows are changes (with ``changelog``) or replace rows below.
    """
    make = _Units(store, plan, bucket, changelog)
    for group in bucket.plan.rewrites:
        yield from make.of(group.sections, writes_data=True)
    for file in bucket.plan.upgrades:
        strategy = upgrade_strategy(store.options, file, bucket.plan.output_level, bucket.top_level)
        if strategy is UpgradeStrategy.CHANGELOG:
            units = make.of([Section(((file,),))], writes_data=False)
            yield from (unit for unit in units if unit.has_effect)


class _Units:
    """Makes the units of one bucket."""

    def __init__(self, store: TableStore, plan: CompactionPlan, bucket: BucketCompaction, changelog: bool) -> None:
        self._options = store.options
        self._plan = plan
        self._bucket = bucket
        self._changelog = changelog
        self._make = MergeUnits(store, plan.entries, plan.vectors.of(plan.entries))

    def of(self, sections: Sequence[Section], writes_data: bool) -> Iterator[RewriteUnit]:
        """Yield the units of adjacent sections."""
        files = [file for section in sections for file in section.files]
        records = self.records_changes([file.level for file in files])
        fresh = any(file.level == 0 for file in files)
        looks_up = fresh and self._looks_up()
        masks = fresh and self._options.deletion_vectors_enabled
        below = self._bucket.plan.below if looks_up or masks else ()
        target = self._options.target_file_size
        parts = [part for section in sections for part in self._make.of_section(section, target, below)]
        for packed in pack_in_order(parts, lambda part: part.cost, target):
            yield RewriteUnit(
                sections=tuple(packed),
                partition=self._bucket.partition,
                bucket=self._bucket.bucket,
                total_buckets=self._plan.entries[files[0].index].total_buckets,
                directory=self._make.directory(self._bucket.partition, self._bucket.bucket),
                output_level=self._bucket.plan.output_level,
                drop_delete=self._bucket.plan.drop_delete,
                looks_up=looks_up,
                changelog=records,
                masks=masks,
                writes_data=writes_data,
            )

    def records_changes(self, levels: Sequence[int]) -> bool:
        """Return whether files of these levels have changes: level 0 with `lookup`, the top with `full-compaction`."""
        if not self._changelog:
            return False
        if self._options.changelog_producer is ChangelogProducer.LOOKUP:
            return 0 in levels
        return self._bucket.plan.output_level == self._bucket.top_level

    def _looks_up(self) -> bool:
        """Return whether rows below the output take part in merges of level 0: they may win, or are in the changelog."""
        options = self._options
        if not options.needs_lookup:
            return False
        if self._changelog or options.merge_engine is not MergeEngine.DEDUPLICATE:
            return True
        return options.deletion_vectors_enabled and (bool(options.sequence_field) or options.ignore_delete)
