"""``lakelsm create``: create a table from DDL text or from the JSON of a schema."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lakelsm.catalog import Catalog
from lakelsm.cli.arguments import Tables, key_and_value
from lakelsm.cli.describe import schema_values
from lakelsm.cli.report import Report, outcome_report
from lakelsm.cli.verb import EXIT_STATUSES, CatalogVerb
from lakelsm.errors import InvalidInputError
from lakelsm.types import DataField, field_from_json

_DETAILS = f"""\
SCHEMA is one of:
  id BIGINT, v STRING COMMENT 'a text'     columns in Paimon's types
  {{"id": "BIGINT", "v": "STRING"}}          JSON of names and types
  {{"fields": [{{"name": "id", "type": "BIGINT"}}], "primaryKeys": ["id"]}}
                                           JSON of Paimon's schema files and of
                                           describe --report json, also with partitionKeys,
                                           options and comment
  @FILE                                    a file with one of these

examples:
  lakelsm create --warehouse /tmp/wh --table shop.orders "id BIGINT, v STRING" \\
      --primary-key id --option bucket=4

{EXIT_STATUSES}"""
#: Keys of the JSON of a schema that define the new table, and keys that are ignored because they get new values.
_DEFINING_KEYS = ("fields", "primaryKeys", "partitionKeys", "options", "comment")
_IGNORED_KEYS = ("version", "id", "highestFieldId", "timeMillis")


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("schema", metavar="SCHEMA", help="columns of the table: DDL text, JSON, or @FILE")
    parser.add_argument("--primary-key", metavar="NAME,NAME…", type=_names, help="columns of the primary key")
    parser.add_argument("--partition-by", metavar="NAME,NAME…", type=_names, help="partition columns")
    parser.add_argument(
        "--option",
        metavar="KEY=VALUE",
        dest="options",
        action="append",
        type=key_and_value,
        default=[],
        help="option of the table, such as bucket=4 (repeatable)",
    )
    parser.add_argument("--comment", metavar="TEXT", help="comment of the table")
    parser.add_argument("--if-not-exists", action="store_true", help="keep an existing table and succeed")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _create(catalog: Catalog, arguments: Namespace) -> Report:
    name, schema = arguments.table, _schema(arguments.schema)
    existed = arguments.if_not_exists and catalog.table_exists(name)
    table = catalog.create_table(
        name,
        schema["fields"],
        primary_key=_flag_or_key(arguments.primary_key, schema, "primaryKeys", "--primary-key") or [],
        partition_by=_flag_or_key(arguments.partition_by, schema, "partitionKeys", "--partition-by") or [],
        options={**schema.get("options", {}), **dict(arguments.options)},
        comment=_flag_or_key(arguments.comment, schema, "comment", "--comment"),
        if_not_exists=arguments.if_not_exists,
    )
    text = f"{name}: {'already exists' if existed else 'created'}\n{table.schema}"
    return outcome_report(text, {"table": name, "schema": schema_values(table.schema)}, changed=not existed)


def _schema(text: str) -> Mapping[str, Any]:
    """Parse SCHEMA into the keys of a schema file."""
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"SCHEMA: file {text[1:]!r} cannot be read as text: {error}.") from error
    if not text.lstrip().startswith("{"):
        return {"fields": text}
    try:
        found = json.loads(text)
        if "fields" not in found and all(isinstance(kind, str) for kind in found.values()):
            return {"fields": found}
        unknown = sorted(set(found) - {*_DEFINING_KEYS, *_IGNORED_KEYS})
        if unknown:
            raise ValueError(f"unknown keys {', '.join(unknown)}; allowed are {', '.join(_DEFINING_KEYS)}")
        if "fields" not in found:
            raise ValueError("expected 'fields', or types as text")
        return {**found, "fields": _columns(found["fields"]), "options": dict(found.get("options", {}))}
    except ValueError as error:
        raise InvalidInputError(f"SCHEMA is not the JSON of a schema: {error}.") from error
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInputError("SCHEMA is not the JSON of a schema; describe --report json shows the form.") from error


def _columns(documents: list[dict[str, Any]]) -> list[DataField]:
    return [field_from_json(document) for document in documents]


def _flag_or_key(given: Any, schema: Mapping[str, Any], key: str, flag: str) -> Any:
    """Return the value of a flag, or else of a key of the JSON. Raises InvalidInputError if the two differ."""
    found = schema.get(key)
    if given is not None and found and given != found:
        raise InvalidInputError(f"{flag}: {given!r} differs from '{key}' of SCHEMA, {found!r}. Leave one of them out.")
    return found if given is None else given


CREATE = CatalogVerb(
    name="create",
    summary="Create a table.",
    details=_DETAILS,
    add_arguments=_add_arguments,
    run=_create,
    tables=Tables.ONE,
)
