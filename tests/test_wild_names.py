"""Columns with any valid name: each call accepts them as values, as the key and as the partition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.schema_changes import AddColumn, RenameColumn
from tests.engines import TableEngine

#: Names with another meaning in SQL, Spark, Parquet or a path.
NAMES = (
    *("*", "*.*", "t.*", "x.*", "a.b", "a..b", "a.", ".a", ".", ".."),
    *("a`b", "`", "``", "`a`", "'", "'a'", '"', '"a"', "a b", " a"),
    *("_metadata", "_file", "_c0", "column_0", "value", "key", "select", "null", "true", "lambda", "count(1)", "1", "1a"),
    *("a-b", "a,b", "a;b", "a=b", "a/b", "a\\b", "\\", "$a", "${a}", "{a}", "(a)", "[0]", "a[0]", "a:b", "a|b", "@", "%"),
    *("?", "#", "&", "<", "--", "/* x */", "ü", "é", "e\u0301", "名", "😀", "ß", "İ", "__lakelsm"),
)
#: Names that are not valid.
REFUSED = ("", " ", "a\tb", "a\nb", "\x00", "rowkind", "_SEQUENCE_NUMBER", "_VALUE_KIND", "_KEY_x", "K")


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def table_of(engine: TableEngine, root: Path, role: str, names: tuple[str, ...]) -> Any:
    """Create a table whose key is column k and the first name; a partition column is also in the key."""
    columns = ", ".join(["k INT NOT NULL", *(f"{quoted(name)} INT" for name in names)])
    key = {"value": ["k"], "key": [names[0]], "partition": [names[0], "k"]}[role]
    options = {"changelog-producer": "input"}
    return engine.create(root, columns, key, [names[0]] if role == "partition" else [], options, name=f"db.{role}")


@pytest.mark.parametrize("role", ["value", "key", "partition"])
def test_every_call_accepts_columns_of_any_valid_name(
    engine: TableEngine, tmp_path: Path, role: str
) -> None:
    names = NAMES if role == "value" else (NAMES[0], "a.b", "v")
    table, star = table_of(engine, tmp_path, role, names), quoted("*")
    rows = [(k, *(10 * k + at for at in range(len(names)))) for k in (1, 2, 3, 4)]
    engine.write(table, rows)
    assert engine.rows(table) == rows
    assert engine.columns(table) == ["k", *names]
    for at, name in enumerate(names if engine.spark is None else names[:2]):
        assert engine.rows(table, where=f"{quoted(name)} = {20 + at}") == [rows[1]]
    assert engine.rows(table, columns=["*", "a.b"], where=f"{star} = 20") == [(20, rows[1][1 + names.index("a.b")])]
    engine.delete(table, f"{star} = 10")
    keys = {"value": (2,), "key": (20,), "partition": (20, 2)}[role]
    ddl = {"value": "k INT", "key": f"{star} INT", "partition": f"{star} INT, k INT"}[role]
    table.delete(keys=engine.frame([keys], ddl))
    assert engine.rows(table) == rows[2:]
    if engine.spark is not None:
        other = quoted(names[1])
        table.update({names[1]: f"{other} + {star}"}, f"{star} = 30")
        assert engine.rows(table, columns=[names[1]], where=f"{star} = 30") == [(31 + 30,)]
        facts = engine.frame([(30, 3)], "j INT, f INT")
        on = {"value": {"f": "k"}, "key": {"j": "*"}, "partition": {"j": "*", "f": "k"}}[role]
        joined = facts.transform(table.lookup_join(on, {names[1]: "*"}))
        assert [tuple(row) for row in joined.collect()] == [(30, 3, 61)]
        assert len(table.inspect.system("audit_log").to_spark().collect()) == 4
    else:
        with table.lookup(["*"]) as lookup:
            there = {"value": (3,), "key": (30,), "partition": (30, 3)}[role]
            assert lookup.get(*keys) is None and lookup.get(*there) is not None
        assert table.inspect.system("audit_log").to_arrow().num_rows == 4
    assert len(engine.changes(table)) >= 6
    assert engine.compact(table, full=True).status == "done"
    assert table.maintenance.analyze(["*"], engine=engine.name).columns == ("*",)
    engine.catalog(tmp_path).alter_table(f"db.{role}", AddColumn("**", "INT"), RenameColumn(names[-1], "`*`"))
    assert engine.columns(table) == ["k", *names[:-1], "`*`", "**"]
    rest = engine.rows(table)
    table.overwrite(engine.frame_for(table, rest))
    assert engine.rows(table) == rest


@pytest.mark.parametrize("name", REFUSED)
def test_other_names_are_refused_by_name_at_creation(local: TableEngine, tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError):
        local.create(tmp_path, f"k INT NOT NULL, {quoted(name)} INT", ["k"])
