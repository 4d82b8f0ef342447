"""The face of a table's versions: which snapshots stay, and the tags and branches that name them."""

from __future__ import annotations

from lakelsm.maintain.opened_table import OpenedTable


class TableVersions(OpenedTable):
    """Expiry, tags, branches, rollback and consumers of a table."""
