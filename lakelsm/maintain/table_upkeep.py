"""The face of a table's upkeep: what takes files and partitions away, and the record of it."""

from __future__ import annotations

from lakelsm.maintain.opened_table import OpenedTable


class TableUpkeep(OpenedTable):
    """Partitions, orphans, statistics and the maintenance history of a table."""
