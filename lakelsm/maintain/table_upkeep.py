"""The face of a table's upkeep: what takes files and partitions away, and the record of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from lakelsm.arguments import checked_age, checked_flag, wrong_argument
from lakelsm.maintain.opened_table import OpenedTable
from lakelsm.maintenance_results import OrphanResult
from lakelsm.surroundings import SYSTEM


class TableUpkeep(OpenedTable):
    """Partitions, orphans, statistics and the maintenance history of a table."""

    def remove_orphans(
        self,
        older_than: str | float | timedelta | datetime = "1 day",
        *,
        dry_run: bool = False,
        force: bool = False,
        engine: str | None = None,
    ) -> OrphanResult:
        """Remove files that no snapshot, tag or long-lived changelog of any branch names: leftovers of writers that died.

        ``older_than`` is an age or a time; younger files stay, as they may be of a commit that is under way: a writer
        that needs longer from its first file to its commit would lose its files. A bound of less than an hour is refused
        without ``force``. Only names that the table's writers give are ever removed. ``dry_run`` tells what would be.
        ``engine`` is 'spark', where tasks list the files, or 'local', this process; by default as in `compact`. Raises
        CorruptTableError, with nothing removed, where something retained cannot be read.
        """
        from lakelsm.maintain.orphans.orphan_removal import remove_orphans

        age = checked_age("older_than", older_than)
        if age is None:
            raise wrong_argument("older_than", older_than, "an age such as '1 day', or a datetime")
        dry_run, force = checked_flag("dry_run", dry_run), checked_flag("force", force)
        store, chosen = self._store(), self._engine(engine)
        bound = age.bound(SYSTEM.clock(), chosen.millis_of)
        return remove_orphans(chosen.runner, store, bound, dry_run=dry_run, force=force)
