"""The system tables by name, and the rows of one."""

from __future__ import annotations

from lakelsm.arguments import checked_name, wrong_argument
from lakelsm.errors import InvalidInputError
from lakelsm.maintain.system_tables.file_tables import BUCKETS, FILE_KEY_RANGES, FILES, PARTITIONS
from lakelsm.maintain.system_tables.manifest_tables import MANIFESTS, TABLE_INDEXES
from lakelsm.maintain.system_tables.schema_tables import AGGREGATION_FIELDS, OPTIONS, SCHEMAS
from lakelsm.maintain.system_tables.snapshot_tables import BRANCHES, CONSUMERS, SNAPSHOTS, TAGS
from lakelsm.maintain.system_tables.system_table import SystemTable

#: Tables of metadata by name.
METADATA_TABLES = {
    table.name: table
    for table in (
        SNAPSHOTS,
        SCHEMAS,
        OPTIONS,
        FILES,
        FILE_KEY_RANGES,
        MANIFESTS,
        PARTITIONS,
        BUCKETS,
        TAGS,
        BRANCHES,
        CONSUMERS,
        AGGREGATION_FIELDS,
        TABLE_INDEXES,
    )
}


def checked_system_table(name: object) -> SystemTable:
    """The system table of a name, in any case as in Java. Raises InvalidInputError naming those that there are."""
    known = f"the name of a system table: {', '.join(sorted(METADATA_TABLES))}"
    text = checked_name("name", name, known)
    found = METADATA_TABLES.get(text.lower()) if isinstance(text, str) else None
    if found is None:
        raise wrong_argument("name", name, known)
    return found


def check_travel(table: SystemTable, travels: bool) -> None:
    """Raise InvalidInputError where a snapshot is chosen of a table that shows no single one."""
    if travels and not table.travels:
        known = ", ".join(sorted(each.name for each in METADATA_TABLES.values() if each.travels))
        raise InvalidInputError(
            f"System table {table.name} shows no single snapshot: leave snapshot_id and tag out, which are for {known}."
        )

