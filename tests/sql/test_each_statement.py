"""Each kind of statement runs on both engines, with the same rows and effects, or is refused by name on both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.errors import UnsupportedFeatureError
from lakelsm.schema_changes import SchemaChange
from lakelsm.sql.listings import _LISTINGS
from lakelsm.sql.procedures import PROCEDURES, UNSUPPORTED
from lakelsm.sql.query_sources import _POINTS
from lakelsm.sql.syntax import statements as sql
from lakelsm.sql.syntax.parser import _UNSUPPORTED, parse_statement
from lakelsm.sql.syntax.relations import FUNCTIONS
from tests.engines import TableEngine
from tests.sql.statements import REFUSED, SCRIPT, Rows, Step

FRAMES = {"codes": pa.table({"code": [7]}), "more": pa.table({"k": [2], "v": ["two"], "n": [0], "x": ["x"]})}


#: tests/snapshots/test_watermarks.py has these, because no statement gives a snapshot a watermark.
WITH_WATERMARKS = {"CALL create_tag_from_watermark", "CALL rollback_to_watermark"}


def rows(found: Any) -> Rows:
    table: pa.Table = found.toArrow() if hasattr(found, "toArrow") else found.to_arrow()
    return list(zip(*(column.to_pylist() for column in table.columns)))


def is_as_expected(catalog: Catalog, step: Step, engine: str) -> bool:
    frames = {name: frame for name, frame in FRAMES.items() if f" {name} " in f"{step.text} "}
    found = catalog.sql(step.text, engine=engine, **frames)
    if step.then is not None:
        found = catalog.sql(step.then, engine="local")
    if step.rows is None and step.count is None:
        return True
    given = rows(found)
    return len(given) == step.count if step.rows is None else given == step.rows


def test_each_statement_has_the_same_effect_on_both_engines(tmp_path: Path, quick_engine: TableEngine) -> None:
    engine, catalog = quick_engine, Catalog(str(tmp_path), quick_engine.spark)
    assert [step.text for step in SCRIPT if not is_as_expected(catalog, step, engine.name)] == []
    assert catalog.list_databases() == []


def test_each_statement_that_is_not_built_is_refused_on_both_engines(tmp_path: Path, engine: TableEngine) -> None:
    catalog = Catalog(str(tmp_path), engine.spark)
    words = [f"{word} INTO x" for word in _UNSUPPORTED]
    procedures = [f"CALL sys.{name}('db.t')" for name in UNSUPPORTED]
    for text in (*REFUSED, *words, *procedures):
        with pytest.raises(UnsupportedFeatureError, match=r"^(SQL: .*|column .*|Table .*)\.$"):
            catalog.sql(text, engine=engine.name)
    assert list(tmp_path.iterdir()) == []


def kinds(statement: sql.Statement) -> Iterator[str]:
    """Yield the kinds of a statement, and of its parts."""
    yield type(statement).__name__
    if isinstance(statement, sql.Show):
        yield f"SHOW {statement.what}"
    elif isinstance(statement, sql.Call):
        yield f"CALL {statement.procedure}"
    elif isinstance(statement, sql.AlterTable):
        yield from (type(change).__name__ for change in statement.changes)
    elif isinstance(statement, sql.Merge):
        yield from (f"{each.matched}: {each.action}{'' if each.values else ' *'}" for each in statement.clauses)
    elif isinstance(statement, sql.Insert):
        kind = "OVERWRITE" if statement.overwrite else "INTO"
        yield f"{kind} {'BY NAME' if statement.by_name else 'by position'}"
        yield from (f"{kind} {'dynamic' if each is None else 'static'}" for each in statement.partition.values())


def test_the_script_has_each_kind_of_statement() -> None:
    found = {kind for step in SCRIPT for kind in kinds(parse_statement(step.text))}
    texts = " ".join(step.text for step in SCRIPT)
    wanted = {each.__name__ for each in (*get_args(sql.Statement), *get_args(SchemaChange))}
    wanted |= {f"SHOW {what}" for what in _LISTINGS} | {f"CALL {name}" for name in PROCEDURES}
    wanted |= {
        "matched: update",
        "matched: update *",
        "matched: delete *",
        "not matched: insert",
        "not matched: insert *",
    }
    wanted |= {"not matched by source: update", "not matched by source: delete *"}
    wanted |= {"INTO by position", "INTO BY NAME", "INTO static", "INTO dynamic"}
    wanted |= {"OVERWRITE by position", "OVERWRITE BY NAME", "OVERWRITE static"}
    assert wanted - found == WITH_WATERMARKS
    assert {name for name in (*FUNCTIONS, *_POINTS) if name not in texts} == {"scan.watermark"}
