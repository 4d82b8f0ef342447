"""Columns of every type, and conditions on them."""

from __future__ import annotations

from datetime import datetime

from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.predicate import Predicate
from lakelsm.types import ArrayType, AtomicType, DataField, DataType, MapType, RowType


def kind(root: str, **more: int) -> AtomicType:
    return AtomicType(root, **more)


TYPES: dict[str, DataType] = {
    "i": kind("INT"),
    "l": kind("BIGINT"),
    "f": kind("FLOAT"),
    "d": kind("DOUBLE"),
    "p": kind("DECIMAL", precision=10, scale=2),
    "wide": kind("DECIMAL", precision=38, scale=30),
    "Text": kind("VARCHAR", length=50),
    "c": kind("CHAR", length=3),
    "flag": kind("BOOLEAN"),
    "raw": kind("VARBINARY", length=9),
    "day": kind("DATE"),
    "ts": kind("TIMESTAMP"),
    "ts3": kind("TIMESTAMP", precision=3),
    "ts9": kind("TIMESTAMP", precision=9),
    "instant": kind("TIMESTAMP_LTZ"),
    "my col": kind("INT"),
    "arr": ArrayType(kind("INT")),
    "m": MapType(kind("VARCHAR", length=5), kind("INT")),
    "s": RowType((DataField(90, "x", kind("INT")),)),
}
FIELDS = tuple(DataField(i, name, data_type) for i, (name, data_type) in enumerate(TYPES.items()))
NOON = datetime(2020, 1, 1, 12)


def parse(sql: str, zone: str | None = None) -> Predicate:
    return parse_where(sql, FIELDS, zone)
