"""What a compaction does with a file that moves up a level: a changelog of it, a rewrite, both or nothing.

The rules are those of Paimon's ``MergeTreeCompactRewriter`` and its heirs (docs/format.md 13.5).
"""

from __future__ import annotations

from enum import Enum

from lakelsm.lsm.levels import FileRange
from lakelsm.options import ChangelogProducer, MergeEngine, TableOptions


class UpgradeStrategy(Enum):
    """What a file that moves up gets."""

    NOTHING = "no changelog, no rewrite"
    CHANGELOG = "changelog, no rewrite"
    CHANGELOG_AND_REWRITE = "changelog and a rewrite"


def upgrade_strategy(options: TableOptions, file: FileRange, output_level: int, top_level: int) -> UpgradeStrategy:
    """What ``file`` gets on its way to ``output_level`` of a bucket whose highest level is ``top_level``.

    'Changelog' also stands for the looking up that finds which rows below the file replaces.
    """
    if options.changelog_producer is ChangelogProducer.FULL_COMPACTION:
        return UpgradeStrategy.CHANGELOG if output_level == top_level else UpgradeStrategy.NOTHING
    if not options.needs_lookup or file.level != 0:
        return UpgradeStrategy.NOTHING
    # Rows that vectors mask need no retraction above them, and readers, which merge nothing, would show it.
    if options.deletion_vectors_enabled and file.may_hold_deletes:
        return UpgradeStrategy.CHANGELOG_AND_REWRITE
    if output_level == top_level:
        return UpgradeStrategy.CHANGELOG
    # Only the newest row counts, so no row below can change the content of the file.
    if options.merge_engine is MergeEngine.DEDUPLICATE and not options.sequence_field:
        return UpgradeStrategy.CHANGELOG
    return UpgradeStrategy.CHANGELOG_AND_REWRITE
