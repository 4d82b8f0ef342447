"""lakelsm: LSM primary-key tables in Apache Paimon's format, on Spark and in one Python process.

`lakelsm.errors` has the errors, `lakelsm.results` the results of operations, `lakelsm.schema_changes` the changes of
`Catalog.alter_table`. See docs/api.md.
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
    from lakelsm.stream.followed_batch import FollowedBatch
    from lakelsm.table import Table, TableView

__all__ = [
    "Catalog",
    "DataField",
    "DataType",
    "FollowedBatch",
    "LakelsmError",
    "Lookup",
    "ReadPlan",
    "Table",
    "TableSchema",
    "TableView",
    "__version__",
]

if not TYPE_CHECKING:  # Hidden from type checkers, which would accept every name.

    def __getattr__(name: str) -> object:
        """Import a class on first use: tasks also import the package, and need few of its modules."""
        from importlib import import_module

        modules = {
            "Catalog": "lakelsm.catalog",
            "FollowedBatch": "lakelsm.stream.followed_batch",
            "Lookup": "lakelsm.lookup.lookup",
            "ReadPlan": "lakelsm.plan.read_plan",
            "Table": "lakelsm.table",
            "TableView": "lakelsm.table",
        }
        if name not in modules:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
