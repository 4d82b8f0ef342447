"""A bucket's compaction plan as the units that tasks carry out, with what of it makes a changelog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakelsm.lsm.interval_partition import Section
from lakelsm.lsm.splits import pack_in_order
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
    """Sections in key order whose merged rows go to one stream of files.

    ``looks_up``: level 0 is among them, and the table looks rows up. ``changelog``: the changes are recorded. Without
    ``writes_data`` nothing else is: the files move up as they are.
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
    writes_data: bool = True


def changelog_rule(schema: TableSchema, options: TableOptions) -> ChangelogRule | None:
    """What compactions of a table record; None where they record nothing."""
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
    """The bucket's rewrites as tasks: groups are cut where the target file size is reached.

    With ``changelog`` files that only move up have a unit too where their rows are changes.
    """
    make = _Units(store, plan, bucket, changelog)
    for group in bucket.plan.rewrites:
        yield from make.of(group.sections, writes_data=True)
    for file in bucket.plan.upgrades:
        if make.records_changes([file.level]):
            yield from make.of([Section(((file,),))], writes_data=False)


class _Units:
    """Makes the units of one bucket."""

    def __init__(self, store: TableStore, plan: CompactionPlan, bucket: BucketCompaction, changelog: bool) -> None:
        self._options = store.options
        self._plan = plan
        self._bucket = bucket
        self._changelog = changelog
        self._make = MergeUnits(store, plan.entries)

    def of(self, sections: Sequence[Section], writes_data: bool) -> Iterator[RewriteUnit]:
        """The units of adjacent sections."""
        files = [file for section in sections for file in section.files]
        records = self.records_changes([file.level for file in files])
        looks_up = self._looks_up([file.level for file in files])
        below = self._bucket.plan.below if looks_up else ()
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
                writes_data=writes_data,
            )

    def records_changes(self, levels: Sequence[int]) -> bool:
        """Whether files of these levels bring changes: from level 0 (`lookup`), or to the top (`full-compaction`)."""
        if not self._changelog:
            return False
        if self._options.changelog_producer is ChangelogProducer.LOOKUP:
            return 0 in levels
        return self._bucket.plan.output_level == self._bucket.top_level

    def _looks_up(self, levels: Sequence[int]) -> bool:
        if not self._options.needs_lookup or 0 not in levels:
            return False
        return self._changelog or self._options.merge_engine is not MergeEngine.DEDUPLICATE
