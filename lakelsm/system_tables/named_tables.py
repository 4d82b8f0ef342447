"""The system tables by name."""

from __future__ import annotations

from typing import TypeAlias

from lakelsm.arguments import checked_name, wrong_argument
from lakelsm.errors import InvalidInputError
from lakelsm.system_tables.data_tables import AUDIT_LOG, BINLOG, READ_OPTIMIZED, AuditLog, ReadOptimized
from lakelsm.system_tables.file_tables import BUCKETS, FILE_KEY_RANGES, FILES, MANIFESTS, PARTITIONS, TABLE_INDEXES
from lakelsm.system_tables.metadata_tables import (
    AGGREGATION_FIELDS,
    BRANCHES,
    CONSUMERS,
    OPTIONS,
    SCHEMAS,
    SNAPSHOTS,
    STATISTICS,
    TAGS,
)
from lakelsm.system_tables.system_table import SystemTable

#: Any system table. All have the members `can_time_travel`, `frame` and `rows`.
AnySystemTable: TypeAlias = SystemTable | AuditLog | ReadOptimized

#: All system tables by name.
SYSTEM_TABLES: dict[str, AnySystemTable] = {
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
        STATISTICS,
        AUDIT_LOG,
        BINLOG,
        READ_OPTIMIZED,
    )
}


def checked_system_table(name: object) -> AnySystemTable:
    """Return the system table with a name, in any case as in Java. Raises InvalidInputError, which lists the names."""
    known = f"the name of a system table: {', '.join(sorted(SYSTEM_TABLES))}"
    text = checked_name("name", name, known)
    found = SYSTEM_TABLES.get(text.lower()) if isinstance(text, str) else None
    if found is None:
        raise wrong_argument("name", name, known)
    return found


def check_time_travel(table: AnySystemTable) -> None:
    """Raise InvalidInputError if a system table cannot show a chosen snapshot."""
    if not table.can_time_travel:
        known = ", ".join(sorted(each.name for each in SYSTEM_TABLES.values() if each.can_time_travel))
        raise InvalidInputError(
            f"System table {table.name} cannot show a chosen snapshot: call table.inspect.system({table.name!r}). System "
            f"tables that can: {known}."
        )
