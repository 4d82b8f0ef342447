"""System columns: their names in files, and the uniqueness of internal names."""

from __future__ import annotations

from lakelsm.schema import system_columns
from lakelsm.schema.system_columns import KEY_FIELD_PREFIX, RESERVED_NAMES, SYSTEM_FIELDS
from lakelsm.types import arrow_field


def test_the_columns_of_files_have_paimons_names_ids_and_types() -> None:
    arrow = map(arrow_field, SYSTEM_FIELDS)
    assert [(field.name, str(field.type), field.nullable, field.metadata) for field in arrow] == [
        ("_SEQUENCE_NUMBER", "int64", False, {b"PARQUET:field_id": b"2147483646"}),
        ("_VALUE_KIND", "int8", False, {b"PARQUET:field_id": b"2147483645"}),
    ]


def test_names_of_system_columns_are_unique_and_refused_for_tables() -> None:
    names = [name for key, name in vars(system_columns).items() if key.isupper() and isinstance(name, str)]
    own = [name for name in names if name != KEY_FIELD_PREFIX]
    assert len(set(own)) == len(own) > 20
    allowed = [name for name in own if not name.startswith(KEY_FIELD_PREFIX) and name not in RESERVED_NAMES]
    assert allowed == ["_SNAPSHOT_ID"]  # Reads refuse a table that has a column of this name.
