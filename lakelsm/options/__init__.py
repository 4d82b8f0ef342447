"""Table options. Their declarations are the source of TableOptions and of docs/options.md."""

from __future__ import annotations

from lakelsm.options.option import Option
from lakelsm.options.option_enums import (
    BucketFunction,
    ChangelogProducer,
    ExpireMode,
    LookupCache,
    LookupCompact,
    MergeEngine,
    ScanMode,
    SortOrder,
    StoreKind,
    TagCreation,
    TagFormat,
    TagPeriod,
)
from lakelsm.options.table_options import ATTRIBUTES, OPTIONS, TableOptions

__all__ = [
    "ATTRIBUTES",
    "OPTIONS",
    "BucketFunction",
    "ChangelogProducer",
    "ExpireMode",
    "LookupCache",
    "LookupCompact",
    "MergeEngine",
    "Option",
    "ScanMode",
    "SortOrder",
    "StoreKind",
    "TableOptions",
    "TagCreation",
    "TagFormat",
    "TagPeriod",
]
