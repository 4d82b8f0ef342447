"""pypaimon as a peer. Rows are exchanged as Arrow IPC files."""

import datetime
import json
import os
from decimal import Decimal
from math import inf, nan

import pyarrow as pa
from pypaimon import CatalogFactory
from pypaimon.schema.data_types import DataField, DataTypeParser, PyarrowFieldParser
from pypaimon.schema.schema import Schema
from pypaimon.schema.schema_change import SchemaChange
from serve import serve

_catalogs = {}


def _open(path):
    database, table = path.rstrip("/").split("/")[-2:]
    warehouse = os.path.dirname(os.path.dirname(path.rstrip("/")))
    if warehouse not in _catalogs:
        _catalogs[warehouse] = CatalogFactory.create({"warehouse": warehouse})
    return _catalogs[warehouse], f"{database.removesuffix('.db')}.{table}"


def _table(path):
    catalog, name = _open(path)
    return catalog.get_table(name)


def create(path, schema):
    catalog, name = _open(path)
    catalog.create_database(name.split(".")[0], True)
    parsed = json.loads(schema)
    fields = [DataField.from_dict(field) for field in parsed["fields"]]
    made = Schema(fields, parsed["partitionKeys"], parsed["primaryKeys"], parsed["options"], parsed.get("comment"))
    catalog.create_table(name, made, False)


def alter(path, changes):
    make = {
        "add": lambda column, kind: SchemaChange.add_column(column, DataTypeParser.parse_data_type(kind)),
        "drop": SchemaChange.drop_column,
        "rename": SchemaChange.rename_column,
        "type": lambda column, kind: SchemaChange.update_column_type(column, DataTypeParser.parse_data_type(kind)),
    }
    catalog, name = _open(path)
    catalog.alter_table(name, [make[verb](*words) for verb, *words in changes])


def write(path, file):
    table = _table(path)
    with pa.ipc.open_file(file) as reader:
        rows = reader.read_all()
    target = PyarrowFieldParser.from_paimon_schema(table.fields)
    rows = rows.select(target.names).cast(target)
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(rows)
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def read(path, file, where):
    builder = _table(path).new_read_builder()
    if where:
        predicates = builder.new_predicate_builder()
        method, column, value = where
        builder = builder.with_filter(getattr(predicates, method)(column, value))
    splits = builder.new_scan().plan().splits()
    rows = builder.new_read().to_arrow(splits)
    if rows is None:
        rows = PyarrowFieldParser.from_paimon_schema(_table(path).fields).empty_table()
    with pa.ipc.new_file(file, rows.schema) as out:
        out.write_table(rows)


_METHODS = {"starts_with": "startswith", "ends_with": "endswith", "in": "is_in", "not_in": "is_not_in"}


def ask(path, questions):
    """Return the ids of the rows that match each condition [method, column, text of an operand ...], or its error."""
    table = _table(path)
    answers = []
    for method, column, *texts in questions:
        operands = [eval(text, {"datetime": datetime, "Decimal": Decimal, "inf": inf, "nan": nan}) for text in texts]
        builder = table.new_read_builder()
        make = getattr(builder.new_predicate_builder(), _METHODS.get(method, method))
        try:
            predicate = make(column, operands) if method in ("in", "not_in") else make(column, *operands)
            builder = builder.with_filter(predicate).with_projection(["id", column])
            rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
            answers.append([] if rows is None else rows.column("id").to_pylist())
        except Exception as error:  # noqa: BLE001 -- the other process compares them
            answers.append(f"{type(error).__name__}: {error}")
    return answers


def changes(path, file, snapshot):
    """Return a streaming read of one snapshot, with kinds in the first column; False if it skips the snapshot."""
    table = _table(path)
    builder = table.new_stream_read_builder().with_include_row_kind(True)
    scan = builder.new_streaming_scan()
    if not scan.follow_up_scanner.should_scan(table.snapshot_manager().get_snapshot_by_id(snapshot)):
        return False
    scan.next_snapshot_id = snapshot
    plan = next(scan.stream_sync())
    rows = builder.new_read().to_arrow(plan.splits())
    if rows is None or not len(rows):
        return False
    with pa.ipc.new_file(file, rows.schema) as out:
        out.write_table(rows)
    return True


serve({"create": create, "alter": alter, "write": write, "read": read, "ask": ask, "changes": changes})
