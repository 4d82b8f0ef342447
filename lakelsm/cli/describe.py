"""``lakelsm describe``: show the columns, keys and options of tables."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from lakelsm.cli.arguments import Tables
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report
from lakelsm.cli.verb import Verb
from lakelsm.options.other_keys import holds_secret
from lakelsm.schema.table_schema import TableSchema
from lakelsm.secret_values import REDACTED
from lakelsm.table import Table


def schema_values(schema: TableSchema) -> dict[str, Any]:
    """Return the keys of a schema file, with the values of secret options replaced."""
    values: dict[str, Any] = json.loads(schema.to_json())
    return {**values, "options": _shown(schema)}


def _shown(schema: TableSchema) -> dict[str, str]:
    return {key: REDACTED if holds_secret(key) else value for key, value in sorted(schema.options.items())}


def _describe(table: Table, arguments: Namespace) -> Report:
    schema = table.schema
    lines = [f"{table.name}: schema {schema.id}", str(schema)]
    lines += [f"'{key}' = '{value}'" for key, value in _shown(schema).items()]
    values = {"table": table.name, "status": "done", "schema": schema_values(schema)}
    return Report(ExitStatus.DONE, "\n".join(lines), values)


DESCRIBE = Verb(
    name="describe",
    summary="Show the columns, keys and options of tables.",
    add_arguments=lambda parser: None,
    run=_describe,
    tables=Tables.ALL,
)
