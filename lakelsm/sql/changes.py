"""Execution of INSERT, UPDATE, DELETE, MERGE and TRUNCATE."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.tokens import Token, TokenKind, has_query, tokenize
from lakelsm.plan.merge_request import MergeRequest, MergeRule
from lakelsm.results import CommitResult
from lakelsm.sql.context import SqlContext
from lakelsm.sql.local.query_result import QueryResult
from lakelsm.sql.syntax import statements as sql
from lakelsm.sql.syntax.query_text import quoted
from lakelsm.sql.tables import literal_value, partition_columns, partition_condition, typed_value
from lakelsm.table.table import Table
from lakelsm.table.table_merge import TableMerge, source_columns
from lakelsm.text_table import amount
from lakelsm.types import STRING_ROOTS


def insert(context: SqlContext, statement: sql.Insert) -> CommitResult:
    """Execute INSERT INTO and INSERT OVERWRITE: columns of the query are taken by position, or by name."""
    table = context.table(statement.table)
    partition = partition_columns(table, statement.partition)
    fixed = {name: value for name, value in partition.items() if value is not None}
    names = _target_columns(table, statement, fixed)
    found = context.query(statement.query.text)
    if isinstance(found, QueryResult):
        found = _with_texts(context, statement.query.text, found, _text_columns(table, names or found.columns))
        rows: Any = _renamed(found.to_reader(), names, table.name)
    else:
        rows = _renamed_frame(found, names, table)
    if not statement.overwrite:
        return table.write(_with_values(rows, table, _partition_values(table, fixed)))
    values = _partition_values(table, fixed)
    rows = _with_values(rows, table, {}, known=values)
    return table.overwrite(rows, values) if values else table.overwrite(rows)


def _target_columns(table: Table, statement: sql.Insert, fixed: Mapping[str, str]) -> list[str] | None:
    """Return the columns that those of the query are for, in order; None by name."""
    if statement.by_name:
        return None
    wanted = [name for name in table.schema.field_names if name not in fixed]
    if statement.columns is None:
        dynamic = [name for name in statement.partition if name not in fixed]
        return [name for name in wanted if name not in dynamic] + [name for name in wanted if name in dynamic]
    known = {name.lower(): name for name in table.schema.field_names}
    names = []
    for name in statement.columns:
        if name.lower() not in known:
            raise InvalidInputError(f"Table {table.name}: column {name!r} does not exist.")
        if known[name.lower()] in fixed:
            raise InvalidInputError(f"Table {table.name}: column {name!r} of INSERT has a value in PARTITION.")
        if known[name.lower()] in names:
            raise InvalidInputError(f"Table {table.name}: column {name!r} of INSERT is given twice.")
        names.append(known[name.lower()])
    return names


def _renamed(reader: pa.RecordBatchReader, names: Sequence[str] | None, table: str) -> pa.RecordBatchReader:
    if names is None:
        return reader
    _check_count(len(reader.schema), names, table)
    schema = pa.schema([pa.field(name, each.type) for name, each in zip(names, reader.schema)])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _renamed_frame(frame: Any, names: Sequence[str] | None, table: Table) -> Any:
    from lakelsm.frames.sql_frame import with_texts

    if names is not None:
        _check_count(len(frame.columns), names, table.name)
        frame = frame.toDF(*names)
    return with_texts(frame, [at for at, is_text in enumerate(_text_columns(table, frame.columns)) if is_text])


def _text_columns(table: Table, names: Sequence[str]) -> list[bool]:
    """Return whether the columns that values are inserted into are texts: then Spark casts other atomic values."""
    texts = {field.name.lower() for field in table.schema.fields if field.type.root in STRING_ROOTS}
    return [name.lower() in texts for name in names]


def _with_texts(context: SqlContext, text: str, found: QueryResult, is_text: Sequence[bool]) -> QueryResult:
    """Return a query whose values for columns of texts are texts."""
    kinds = found.schema.types
    casts = [
        wanted and not (pa.types.is_string(kind) or pa.types.is_null(kind) or pa.types.is_nested(kind))
        for wanted, kind in zip(is_text, kinds)
    ]
    if len(casts) < len(kinds) or not any(casts):
        return found
    columns = (
        f"{f'CAST(c{at} AS STRING)' if cast else f'c{at}'} AS {quoted(name)}"
        for at, (cast, name) in enumerate(zip(casts, found.columns))
    )
    names = ", ".join(f"c{at}" for at in range(len(kinds)))
    wrapped = context.query(f"SELECT {', '.join(columns)} FROM ({text}\n) AS inserted({names})")
    assert isinstance(wrapped, QueryResult)
    return wrapped


def _check_count(count: int, names: Sequence[str], table: str) -> None:
    if count != len(names):
        raise InvalidInputError(
            f"Table {table}: the query has {amount(count, 'column')}, and INSERT needs {len(names)}: {', '.join(names)}."
        )


def _partition_values(table: Table, fixed: Mapping[str, str]) -> dict[str, Any]:
    fields = {field.name: field for field in table.schema.fields}
    return {name: typed_value(literal_value(text), fields[name]) for name, text in fixed.items()}


def _with_values(rows: Any, table: Table, fixed: Mapping[str, Any], known: Collection[str] = ()) -> Any:
    """Return rows with the columns that they lack: values of PARTITION, and NULL for others that are not ``known``."""
    values = dict(fixed)
    if isinstance(rows, pa.RecordBatchReader):
        have = {name.lower() for name in rows.schema.names}
    else:
        have = {name.lower() for name in rows.columns}
    partial = table.schema.options.get("merge-engine") == "partial-update"
    for name in table.schema.field_names:
        if name.lower() not in have and name not in values and name not in known and not partial:
            values[name] = None
    if not values:
        return rows
    if not isinstance(rows, pa.RecordBatchReader):
        from lakelsm.frames.sql_frame import with_literals

        return with_literals(rows, values)
    return _with_constants(rows, values)


def _with_constants(rows: pa.RecordBatchReader, values: Mapping[str, Any]) -> pa.RecordBatchReader:
    constants = {name: pa.scalar(value) for name, value in values.items()}
    added = [pa.field(name, value.type) for name, value in constants.items()]
    schema = pa.schema([*rows.schema, *added])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            columns = [*batch.columns, *(pa.repeat(value, len(batch)) for value in constants.values())]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def delete(context: SqlContext, statement: sql.Delete) -> CommitResult:
    """Execute DELETE FROM."""
    table = context.table(statement.table)
    where = "TRUE" if statement.where is None else _unqualified(statement.where, statement.table, statement.alias)
    return table.delete(where, engine=context.engine)


def update(context: SqlContext, statement: sql.Update) -> CommitResult:
    """Execute UPDATE."""
    table = context.table(statement.table)
    name, alias = statement.table, statement.alias
    values = {column: _unqualified(text, name, alias) for column, text in statement.values.items()}
    where = "TRUE" if statement.where is None else _unqualified(statement.where, name, alias)
    return table.update(values, where, engine=context.engine)


def merge(context: SqlContext, statement: sql.Merge) -> CommitResult:
    """MERGE INTO."""
    table = context.table(statement.table)
    clauses = tuple(MergeRule(each.matched, each.condition, each.action, each.values) for each in statement.clauses)
    source_alias = statement.source_alias
    if source_alias is None:
        last = tokenize(statement.source)[-2]
        source_alias = _plain_name(last) if last.kind is TokenKind.QUOTED else "lakelsm_source"
    target_alias = statement.alias or statement.table[-1]
    evolves = statement.with_schema_evolution
    request = MergeRequest(statement.on, clauses, target_alias, source_alias, evolves=evolves)
    source = partial(replace(context, target=table).query, f"SELECT * FROM {statement.source}")
    columns = source_columns(source()) if evolves else None
    return TableMerge(table, source, request, columns=columns).execute(engine=context.engine)


def _unqualified(text: str, table: sql.Name, alias: str | None) -> str:
    """Return an expression without the qualifiers of its columns: the alias, else the table with or without database.

    Raises UnsupportedFeatureError for queries.
    """
    qualifiers = [[part.lower() for part in each] for each in ([(alias,)] if alias else [table, table[-1:]])]
    tokens = tokenize(text)
    if has_query(tokens):
        raise UnsupportedFeatureError(f"SQL: a query within {text[:100]!r} is not supported there.")
    parts, position, at = [], 0, 0
    while at < len(tokens):
        token = tokens[at]
        is_member = at > 0 and tokens[at - 1].is_word(".")
        found = 0 if is_member else max(_qualifier_length(tokens, at, each) for each in qualifiers)
        if found:
            parts.append(text[position : token.start])
            position = tokens[at + found - 1].end
        at += found or 1
    return "".join([*parts, text[position:]])


def _qualifier_length(tokens: Sequence[Token], start: int, names: Sequence[str]) -> int:
    """Return how many tokens from ``start`` on are some names, each with a dot after it; 0 if they are not."""
    for at, name in enumerate(names):
        pair = tokens[start + 2 * at : start + 2 * at + 2]
        if len(pair) < 2 or pair[0].kind not in (TokenKind.NAME, TokenKind.QUOTED) or not pair[1].is_word("."):
            return 0
        if _plain_name(pair[0]).lower() != name:
            return 0
    return 2 * len(names)


def _plain_name(token: Token) -> str:
    return token.text if token.kind is TokenKind.NAME else token.text[1:-1].replace("``", "`")


def truncate(context: SqlContext, statement: sql.Truncate) -> Any:
    """Execute TRUNCATE TABLE: drop all or the named partitions, or overwrite an unpartitioned table with no rows."""
    table = context.table(statement.table)
    if statement.partition:
        return table.maintenance.drop_partitions(partition_condition(table, statement.partition))
    if table.schema.partition_keys:
        return table.maintenance.drop_partitions("TRUE")
    return table.overwrite(table.to_reader("FALSE"))
