"""The public classes of one table: `Table`, the read-only `TableView`, and the namespaces of a table."""

from lakelsm.table.result_table import ResultTable
from lakelsm.table.table import Table
from lakelsm.table.table_branches import TableBranches
from lakelsm.table.table_consumers import TableConsumers
from lakelsm.table.table_inspection import SnapshotInspection, TableInspection
from lakelsm.table.table_maintenance import TableMaintenance
from lakelsm.table.table_merge import TableMerge
from lakelsm.table.table_tags import TableTags
from lakelsm.table.table_view import TableView

__all__ = [
    "ResultTable",
    "SnapshotInspection",
    "Table",
    "TableBranches",
    "TableConsumers",
    "TableInspection",
    "TableMaintenance",
    "TableMerge",
    "TableTags",
    "TableView",
]
