"""The type changes of a column that keep every value: Paimon's implicit casts, without lossy ones.

Source: Paimon's `DataTypeCasts` (implicit rules) and its cast executors. lakelsm excludes implicit casts whose result
depends on padding, truncation, overflow or a session time zone.
"""

from __future__ import annotations

from collections.abc import Callable

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.types import (
    BINARY_ROOTS,
    INTEGER_BITS,
    STRING_ROOTS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)

_INTEGER_ORDER = tuple(INTEGER_BITS)
#: The number of decimal digits of integers.
INTEGER_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_EXACT = frozenset([*_INTEGER_ORDER, "DECIMAL"])


def can_widen(old: DataType, new: DataType) -> bool:
    """Return whether values of `old` can be read as `new`: the same type or a wider one, regardless of nullability.

    Members of a ROW are matched by field id; they may have been added or dropped.
    """
    return _every(old, new, _atomic)


def can_change(old: DataType, new: DataType) -> bool:
    """Return whether a column may change from `old` to `new`: its values can be widened, and Java can read them then.

    Java accepts a change of TIME's precision, but has no such cast, and cannot read the table's files afterwards.
    """
    return _every(old, new, lambda one, other: _atomic(one, other) and _is_cast_by_java(one, other))


def _every(old: DataType, new: DataType, holds: Callable[[AtomicType, AtomicType], bool]) -> bool:
    if isinstance(old, AtomicType) and isinstance(new, AtomicType):
        return holds(old, new)
    if isinstance(old, RowType) and isinstance(new, RowType):
        members = {member.id: member for member in old.fields}
        return all(_every(members[m.id].type, m.type, holds) for m in new.fields if m.id in members)
    if isinstance(old, (ArrayType, MultisetType)) and type(old) is type(new):
        return _every(old.element, new.element, holds)
    if isinstance(old, MapType) and isinstance(new, MapType):
        return _every(old.key, new.key, holds) and _every(old.value, new.value, holds)
    if isinstance(old, VectorType) and isinstance(new, VectorType):
        return old.length == new.length and _every(old.element, new.element, holds)
    return False


def _is_cast_by_java(old: AtomicType, new: AtomicType) -> bool:
    return old.root != "TIME" or old.precision == new.precision


def check_readable(column: DataField, source: DataField) -> None:
    """Raise UnsupportedFeatureError unless values of the data file's column `source` can be read as `column`.

    Other engines also change types by casts that cut, round or parse values.
    """
    if not can_widen(source.type, column.type):
        raise UnsupportedFeatureError(
            f"column '{column.name}' is {source.type.sql()} in a data file and {column.type.sql()} in the table: lakelsm "
            "reads only type changes that keep every value. Run a full compaction with Apache Paimon."
        )


def _atomic(old: AtomicType, new: AtomicType) -> bool:
    if old.with_nullable(True) == new.with_nullable(True):
        return True
    if old.root in _INTEGER_ORDER and new.root in _INTEGER_ORDER:
        return _INTEGER_ORDER.index(old.root) <= _INTEGER_ORDER.index(new.root)
    if new.root in ("FLOAT", "DOUBLE"):
        return old.root in _EXACT or (old.root == "FLOAT" and new.root == "DOUBLE")
    if new.root == "DECIMAL":
        return old.root in _EXACT and _fits_decimal(old, new)
    if new.root == "VARCHAR":
        return old.root in STRING_ROOTS and (old.length or 0) <= (new.length or 0)
    if new.root == "VARBINARY":
        return old.root in BINARY_ROOTS and (old.length or 0) <= (new.length or 0)
    if new.root in ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ"):
        return old.root == new.root and (old.precision or 0) <= (new.precision or 0)
    return False


def _fits_decimal(old: AtomicType, new: AtomicType) -> bool:
    old_scale = old.scale or 0
    old_digits = INTEGER_DIGITS.get(old.root, (old.precision or 0) - old_scale)
    return old_scale <= (new.scale or 0) and old_digits <= (new.precision or 0) - (new.scale or 0)
