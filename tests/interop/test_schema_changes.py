"""Schemas that Java creates and changes: lakelsm gives every column and every member of a ROW the same field id."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.types import ArrayType, DataField, DataType, MapType, RowType, parse_columns
from tests.interop.lakelsm_tables import schema_change
from tests.interop.peers import Change, JavaPaimon


def _random_type(random: Random, depth: int) -> str:
    kind = random.choice(["INT", "STRING", "ROW", "ROW", "ARRAY", "MAP", "MULTISET"] if depth else ["INT", "STRING"])
    if kind == "ROW":
        members = [f"m{at} {_random_type(random, depth - 1)}" for at in range(random.randint(1, 3))]
        return f"ROW<{', '.join(members)}>"
    if kind == "ARRAY":
        return f"ARRAY<{_random_type(random, depth - 1)}>"
    if kind == "MAP":
        return f"MAP<{random.choice(['INT', 'ROW<k INT>'])}, {_random_type(random, depth - 1)}>"
    return "MULTISET<STRING>" if kind == "MULTISET" else kind


def _rows(fields: Sequence[DataField], path: str = "") -> list[tuple[str, RowType]]:
    """Return all ROW types of columns with their paths, in the form of changes."""
    found = []
    for field in fields:
        kind: DataType = field.type
        where = path + field.name
        while isinstance(kind, (ArrayType, MapType)):
            where += ".element" if isinstance(kind, ArrayType) else ".value"
            kind = kind.element if isinstance(kind, ArrayType) else kind.value
        if isinstance(kind, RowType):
            found += [(where, kind), *_rows(kind.fields, where + ".")]
    return found


def _random_change(random: Random, schema: TableSchema, number: int) -> Change:
    rows = _rows(schema.fields[1:])
    kind = _random_type(random, random.randint(0, 3))
    if not rows or random.random() < 0.4:
        return ("add", f"c{number}", kind)
    where, row = random.choice(rows)
    verb = random.choice(["add", "drop", "rename"])
    if verb == "add":
        return ("add", f"{where}.n{number}", kind)
    if verb == "drop":
        name = random.choice(row.fields).name
        return ("add", f"c{number}", kind) if len(row.fields) == 1 else ("drop", f"{where}.{name}")
    return ("rename", f"{where}.{random.choice(row.fields).name}", f"r{number}")


def _document(text: str) -> Any:
    document = json.loads(text)
    return document["fields"], document["highestFieldId"]


@pytest.mark.parametrize("seed", range(4))
def test_members_of_rows_have_javas_field_ids(java: JavaPaimon, path: Path, seed: int) -> None:
    random = Random(seed)
    columns = ", ".join(["k INT", *(f"c{at} {_random_type(random, 3)}" for at in range(4))])
    java.create(path, columns, ["k"], options={"bucket": "1"})
    schema = create_schema(parse_columns(columns), ["k"], [], {"bucket": "1"})
    assert _document(schema.to_json()) == _document((path / "schema" / "schema-0").read_text())
    for number in range(1, 9):
        change = _random_change(random, schema, number + 9)
        java.alter(path, change)
        schema = apply_changes(schema, [schema_change(change)], 0)
        assert _document(schema.to_json()) == _document((path / "schema" / f"schema-{number}").read_text()), change
