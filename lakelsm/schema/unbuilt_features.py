"""The table of all features of Paimon that lakelsm does not support and refuses.

An issue that builds a feature deletes its line here. `when` finds the feature in a schema and its options; `needed_by`
says which operations on an existing table are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.options import MergeEngine, ScanMode, TableOptions
from lakelsm.options.other_keys import FEATURE_KEYS, UPKEEP_KEYS, WRITE_KEYS, check_unbuilt_keys
from lakelsm.options.partition_options import EXPIRATION_STRATEGIES, SUCCESS_FILE
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import BINARY_ROOTS, ArrayType, DataType, MapType, MultisetType, RowType, VectorType


@dataclass(frozen=True)
class _Case:
    schema: TableSchema
    options: TableOptions

    def key(self, key: str, *harmless: str) -> bool:
        """Return whether the option is set to a text that is not one of ``harmless``."""
        text = self.schema.options.get(key)
        return text is not None and text.strip().lower() not in harmless


class _NeededBy(Enum):
    """The operations on an existing table that need a feature and are refused. Creation is always refused.

    ``READS``: reads would be wrong, so the table cannot be opened. ``WRITES``: reads are right, and written files would
    be wrong. ``NOTHING``: the feature changes how files are stored, where each reader and writer may differ.
    """

    READS = "reads"
    WRITES = "writes"
    NOTHING = "nothing"


@dataclass(frozen=True)
class _Unbuilt:
    feature: str
    when: Callable[[_Case], bool]
    needed_by: _NeededBy = _NeededBy.READS


_LATEST_SCANS = (ScanMode.DEFAULT, ScanMode.LATEST_FULL, ScanMode.FULL, ScanMode.LATEST)
_SCAN_STARTS = (
    "scan.snapshot-id",
    "scan.timestamp",
    "scan.timestamp-millis",
    "scan.creation-time-millis",
    "scan.file-creation-time-millis",
    "scan.tag-name",
    "scan.version",
    "scan.watermark",
    "incremental-between",
    "incremental-between-timestamp",
    "incremental-to-auto-tag",
)


def _aggregates(case: _Case, *functions: str) -> bool:
    """Return whether a column of a table that aggregates has one of the functions."""
    if case.options.merge_engine not in (MergeEngine.AGGREGATION, MergeEngine.PARTIAL_UPDATE):
        return False
    default = case.options.default_aggregate_function
    settings = case.options.field_options
    columns = set(case.schema.field_names) - set(case.schema.primary_keys)
    return any(settings.get(name, {}).get("aggregate-function", default) in functions for name in columns)


def _set(key: str, *harmless: str) -> Callable[[_Case], bool]:
    return lambda case: case.key(key, *harmless)


def _other_than(key: str, text: str) -> str:
    return f"option '{key}'" + (f" other than '{text}'" if text else "")


def _given(key: str) -> Callable[[_Case], bool]:
    """Return whether a declared option is set, by its key or a fallback key."""
    return lambda case: case.options.is_set(key)


def _column_of(root: str) -> Callable[[_Case], bool]:
    return lambda case: _has_type(case.schema, lambda kind: kind.root == root)


def _has_type(schema: TableSchema, holds: Callable[[DataType], bool]) -> bool:
    """Return whether the type of a column, or a type within it, fulfils ``holds``."""
    return any(_contains(column.type, holds) for column in schema.fields)


_UNBUILT: tuple[_Unbuilt, ...] = (
    _Unbuilt("table type (option 'type') other than 'table'", _set("type", "table")),
    _Unbuilt("tables without a primary key", lambda case: not case.schema.primary_keys),
    _Unbuilt(
        "aggregate functions 'theta_sketch' and 'hll_sketch' without the package datasketches",
        lambda case: not find_spec("datasketches") and _aggregates(case, "theta_sketch", "hll_sketch"),
    ),
    _Unbuilt("'bucket' = '-2' (postponed buckets)", lambda case: case.options.bucket == -2),
    _Unbuilt(
        "cross-partition update ('bucket' = '-1' and a primary key without all partition columns)",
        lambda case: case.options.bucket == -1 and case.schema.cross_partition,
    ),
    _Unbuilt("'sequence.snapshot-ordering' = 'true'", lambda case: case.options.sequence_snapshot_ordering),
    _Unbuilt("'row-tracking.enabled' = 'true'", lambda case: case.options.row_tracking_enabled),
    _Unbuilt("'data-evolution.enabled' = 'true'", lambda case: case.options.data_evolution_enabled),
    _Unbuilt(
        "a data file format (option 'file.format') other than parquet", _set("file.format", "parquet"), _NeededBy.WRITES
    ),
    _Unbuilt("'branch' other than 'main'", lambda case: case.options.branch != "main"),
    *(_Unbuilt(f"a stored start of scans other than the latest state ('{key}')", _given(key)) for key in _SCAN_STARTS),
    _Unbuilt(
        "a stored start of scans other than the latest state ('scan.mode')",
        lambda case: case.options.scan_mode not in _LATEST_SCANS,
    ),
    *(_Unbuilt(_other_than(key, text), _set(key, text)) for key, text in FEATURE_KEYS.items()),
    *(_Unbuilt(_other_than(key, text), _set(key, text), _NeededBy.WRITES) for key, text in WRITE_KEYS.items()),
    *(_Unbuilt(_other_than(key, text), _set(key, text), _NeededBy.NOTHING) for key, text in UPKEEP_KEYS.items()),
    _Unbuilt(
        "'partition.expiration-strategy' other than 'values-time' and 'update-time'",
        lambda case: case.options.partition_expiration_strategy not in EXPIRATION_STRATEGIES,
        _NeededBy.NOTHING,
    ),
    _Unbuilt(
        "'partition.mark-done-action' other than 'success-file'",
        lambda case: case.options.partition_mark_done_action != SUCCESS_FILE,
        _NeededBy.NOTHING,
    ),
    _Unbuilt("'map.storage-layout' = 'shared-shredding'", lambda case: _shreds_maps(case.options)),
    _Unbuilt(
        "an index of one key of a map ('file-index.<type>.columns' = 'column[key]')",
        lambda case: any(index.is_nested for index in case.options.file_indexes),
        _NeededBy.NOTHING,
    ),
    _Unbuilt("Parquet encryption ('parquet.encryption...')", lambda case: _encrypts(case.schema.options)),
    _Unbuilt(
        "a partition column of type BINARY or VARBINARY with 'partition.legacy-name' = 'true'",
        lambda case: case.options.partition_legacy_name and _has_binary_partition(case.schema),
    ),
    _Unbuilt("columns with a default value", lambda case: _has_defaults(case.schema)),
    _Unbuilt("columns of type VARIANT", _column_of("VARIANT")),
    _Unbuilt("columns of type BLOB", _column_of("BLOB")),
    _Unbuilt("columns of type VECTOR", _column_of("VECTOR")),
    _Unbuilt(
        "columns of type ROW without members, which Parquet cannot store",
        lambda case: _has_type(case.schema, lambda kind: isinstance(kind, RowType) and not kind.fields),
        _NeededBy.WRITES,
    ),
)


def refuse_unbuilt(schema: TableSchema, options: TableOptions, creating: bool) -> None:
    """Raise UnsupportedFeatureError for the first unsupported feature that creating or reading the table needs."""
    if creating:
        _refuse(schema, options, "create or change", tuple(_NeededBy))
        check_unbuilt_keys(schema.options)
    else:
        _refuse(schema, options, "open", (_NeededBy.READS,))


def refuse_unbuilt_writes(schema: TableSchema, options: TableOptions) -> None:
    """Raise UnsupportedFeatureError for the first unsupported feature that writes to an opened table need."""
    _refuse(schema, options, "write to", (_NeededBy.WRITES,))


def _refuse(schema: TableSchema, options: TableOptions, action: str, needed_by: Collection[_NeededBy]) -> None:
    case = _Case(schema, options)
    for unbuilt in _UNBUILT:
        if unbuilt.needed_by in needed_by and unbuilt.when(case):
            raise UnsupportedFeatureError(
                f"cannot {action} the table: lakelsm does not support {unbuilt.feature}. Use Apache Paimon, or leave the "
                "feature out."
            )


def _shreds_maps(options: TableOptions) -> bool:
    layouts = (column.get("map.storage-layout", "default") for column in options.field_options.values())
    return any(layout.strip().lower() == "shared-shredding" for layout in layouts)


def _has_binary_partition(schema: TableSchema) -> bool:
    return any(field.type.root in BINARY_ROOTS for field in schema.partition_fields)


def _has_defaults(schema: TableSchema) -> bool:
    return any(column.default_value is not None for column in schema.fields)


def _encrypts(options: Mapping[str, str]) -> bool:
    return any(key.startswith("parquet.encryption") for key in options)


def _contains(data_type: DataType, holds: Callable[[DataType], bool]) -> bool:
    if holds(data_type):
        return True
    if isinstance(data_type, RowType):
        return any(_contains(member.type, holds) for member in data_type.fields)
    if isinstance(data_type, (ArrayType, MultisetType, VectorType)):
        return _contains(data_type.element, holds)
    if isinstance(data_type, MapType):
        return _contains(data_type.key, holds) or _contains(data_type.value, holds)
    return False
