"""The system tables of schemas, options and the functions of columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lakelsm.maintain.system_tables.system_table import SystemTable, TableState, columns_of
from lakelsm.options.other_keys import holds_secret
from lakelsm.schema.table_schema import TableSchema
from lakelsm.secret_values import HIDDEN
from lakelsm.types import field_to_json


def _schemas(state: TableState) -> Sequence[Sequence[Any]]:
    def row(schema: TableSchema) -> tuple[Any, ...]:
        return (
            schema.id,
            _json([field_to_json(field) for field in schema.fields]),
            _json(list(schema.partition_keys)),
            _json(list(schema.primary_keys)),
            _json(_shown(schema)),
            schema.comment,
            state.wall_clock(schema.time_millis),
        )

    schemas = state.store.schemas
    return columns_of(map(row, map(schemas.get, schemas.ids())), 7)


SCHEMAS = SystemTable(
    "schemas",
    "schema_id BIGINT NOT NULL, fields STRING NOT NULL, partition_keys STRING NOT NULL, primary_keys STRING NOT NULL, "
    "options STRING NOT NULL, comment STRING, update_time TIMESTAMP(3) NOT NULL",
    _schemas,
)


def _options(state: TableState) -> Sequence[Sequence[Any]]:
    return columns_of(_shown(state.store.schema).items(), 2)


def _shown(schema: TableSchema) -> dict[str, str]:
    """The options, without the value of an unknown key that may be that of a secret."""
    return {key: HIDDEN if holds_secret(key) else text for key, text in schema.options.items()}


OPTIONS = SystemTable("options", "key STRING NOT NULL, value STRING NOT NULL", _options)


def _aggregation_fields(state: TableState) -> Sequence[Sequence[Any]]:
    schema = state.store.schema
    options: dict[str, list[tuple[str, str]]] = {}
    for key, value in schema.options.items():
        parts = key.rstrip(".").split(".")
        if len(parts) > 2 and parts[0] == "fields":
            options.setdefault(parts[1], []).append((key, value))

    def texts(name: str, at: int) -> str:
        return f"[{', '.join(pair[at] for pair in options.get(name, ()))}]"

    return columns_of(
        (
            (field.name, field.type.sql(), texts(field.name, 1), texts(field.name, 0), field.description)
            for field in schema.fields
        ),
        5,
    )


AGGREGATION_FIELDS = SystemTable(
    "aggregation_fields",
    "field_name STRING NOT NULL, field_type STRING NOT NULL, function STRING, function_options STRING, comment STRING",
    _aggregation_fields,
)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
