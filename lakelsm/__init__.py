"""lakelsm: LSM primary-key tables in Apache Paimon's format, as one engine in Python on Spark and in this process.

`lakelsm.errors`, `lakelsm.results` and `lakelsm.schema_changes` have the errors, what operations return, and the changes
of `Catalog.alter_table`. See docs/api.md.
"""

from typing import TYPE_CHECKING

from lakelsm.errors import LakelsmError
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import DataField, DataType
from lakelsm.version import VERSION as __version__

if TYPE_CHECKING:
    from lakelsm.catalog import Catalog
    from lakelsm.lookup.lookup import Lookup
    from lakelsm.plan.read_plan import ReadPlan
    from lakelsm.table import Table, TableView

__all__ = [
    "Catalog",
    "DataField",
    "DataType",
    "LakelsmError",
    "Lookup",
    "ReadPlan",
    "Table",
    "TableSchema",
    "TableView",
    "__version__",
]

if not TYPE_CHECKING:  # A type checker knows these from above, and no other names.

    def __getattr__(name: str) -> object:
        """Operations are imported on first use: a task, which imports the package too, runs one."""
        from importlib import import_module

        homes = {
            "Catalog": "lakelsm.catalog",
            "Lookup": "lakelsm.lookup.lookup",
            "ReadPlan": "lakelsm.plan.read_plan",
            "Table": "lakelsm.table",
            "TableView": "lakelsm.table",
        }
        if name not in homes:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
