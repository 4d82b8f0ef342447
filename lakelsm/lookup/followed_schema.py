"""What becomes of a lookup when the schema of its table changes: options follow, the columns that it has must stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lakelsm.errors import InvalidInputError
from lakelsm.lookup.lookup_spec import LookupSpec
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import same_layout


def followed(spec: LookupSpec) -> LookupSpec:
    """The lookup on the newest schema of its table; options that it was opened with stay on top.

    Raises InvalidInputError where a column that it needs was dropped, renamed or got another type: what it hands out is
    to have one schema.
    """
    store = spec.store
    newest = store.schemas.latest()
    if newest.id == store.schema.id:
        return spec
    for problem in _changed_columns(spec, newest):
        raise InvalidInputError(
            f"Table {store.name}: schema {newest.id} {problem} since the lookup was opened: open another one."
        )
    own = store.schemas.get(store.schema.id).options
    overrides = {key: text for key, text in store.schema.options.items() if own.get(key) != text}
    return replace(spec, store=_with_options(store, newest, overrides))


def _with_options(store: TableStore, schema: TableSchema, overrides: dict[str, str]) -> TableStore:
    return store.with_schema(schema.with_options({**schema.options, **overrides}) if overrides else schema)


def _changed_columns(spec: LookupSpec, newest: TableSchema) -> Iterator[str]:
    schema = spec.store.schema
    needed = {*spec.key, *spec.read_columns}
    now = {field.id: field for field in newest.fields}
    for name in schema.field_names:
        if name not in needed:
            continue
        was = schema.field(name)
        field = now.get(was.id)
        if field is None:
            yield f"has no column {name!r} any more, which was there"
        elif field.name != name:
            yield f"calls column {name!r} {field.name!r}, which had its name"
        elif not same_layout(was.type, field.type):
            yield f"has column {name!r} as {field.type.sql()}, which was {was.type.sql()}"
