"""Table options: declared once, parsed to a frozen TableOptions, documented from the declarations."""

from __future__ import annotations

from lakelsm.options.option import Option
from lakelsm.options.option_enums import (
    BucketFunction,
    ChangelogProducer,
    LookupCompact,
    MergeEngine,
    ScanMode,
    SortOrder,
)
from lakelsm.options.table_options import ATTRIBUTES, OPTIONS, TableOptions

__all__ = [
    "ATTRIBUTES",
    "OPTIONS",
    "BucketFunction",
    "ChangelogProducer",
    "LookupCompact",
    "MergeEngine",
    "Option",
    "ScanMode",
    "SortOrder",
    "TableOptions",
]
