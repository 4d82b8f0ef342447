"""lakelsm: LSM primary-key tables in Apache Paimon's format, as a Spark-native engine in Python."""

from lakelsm.catalog import Catalog
from lakelsm.compact.compactor import CompactionResult
from lakelsm.errors import (
    BatchHistoryExpiredError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptTableError,
    InvalidInputError,
    LakelsmError,
    SnapshotNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from lakelsm.table import CommitResult, Table

__all__ = [
    "BatchHistoryExpiredError",
    "Catalog",
    "CommitConflictError",
    "CommitOutcomeUnknownError",
    "CommitResult",
    "CompactionResult",
    "CorruptTableError",
    "InvalidInputError",
    "LakelsmError",
    "SnapshotNotFoundError",
    "Table",
    "TableAlreadyExistsError",
    "TableNotFoundError",
    "UnsupportedFeatureError",
]
