"""The work of a compaction on an upgraded file: write its changelog, rewrite it, both or nothing.

The rules are those of Paimon's ``MergeTreeCompactRewriter`` and its subclasses (docs/format.md 13.5).
"""

from __future__ import annotations

from enum import Enum

from lakelsm.lsm.levels import FileRange
from lakelsm.options import ChangelogProducer, MergeEngine, TableOptions


class UpgradeStrategy(Enum):
    """The work of a compaction on an upgraded file."""

    NOTHING = "no changelog, no rewrite"
    CHANGELOG = "changelog, no rewrite"
    CHANGELOG_AND_REWRITE = "changelog and a rewrite"


def upgrade_strategy(options: TableOptions, file: FileRange, output_level: int, top_level: int) -> UpgradeStrategy:
    """Return the work of a compaction that upgrades ``file`` to ``output_level``.

    ``top_level`` is the highest level of the bucket. CHANGELOG includes the look-up of the rows below that the file
    replaces.
    """
    if options.changelog_producer is ChangelogProducer.FULL_COMPACTION:
        return UpgradeStrategy.CHANGELOG if output_level == top_level else UpgradeStrategy.NOTHING
    if not options.needs_lookup or file.level != 0:
        return UpgradeStrategy.NOTHING
    # Masked rows need no retraction above them, and readers, which do not merge, would show the retraction.
    if options.deletion_vectors_enabled and file.may_hold_deletes:
        return UpgradeStrategy.CHANGELOG_AND_REWRITE
    if output_level == top_level:
        return UpgradeStrategy.CHANGELOG
    # Only the newest row counts, so no row below can change the rows of the file.
    if options.merge_engine is MergeEngine.DEDUPLICATE and not options.sequence_field:
        return UpgradeStrategy.CHANGELOG
    return UpgradeStrategy.CHANGELOG_AND_REWRITE
