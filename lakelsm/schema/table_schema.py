"""TableSchema, the content of a schema file (columns with ids, keys, options), and the first schema of a new table.

Source of the rules: docs/format.md 3 and 6.1; Paimon's `Schema` and `TableSchema` for key constraints.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any

import pyarrow as pa

from lakelsm.arguments import checked_names, checked_text, option_texts, wrong_argument
from lakelsm.errors import CorruptTableError, InvalidInputError
from lakelsm.json_document import parse_object
from lakelsm.schema.identifiers import check_new_name, match, unknown_column
from lakelsm.schema.system_columns import KEY_FIELD_ID_START, KEY_FIELD_PREFIX
from lakelsm.types import (
    UNASSIGNED_ID,
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    check_nesting,
    field_from_arrow,
    field_from_json,
    field_to_json,
    nested_row_fields,
    parse_columns,
)

#: The maximum number of columns in a one-line text.
_MAX_SHOWN = 20
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

SCHEMA_VERSION = 3  # Persisted: do not change.

_VERSION_BUCKET_DEFAULT_ONE = 1  # Up to this version, a schema file without the option means bucket=1.
_VERSION_FORMAT_DEFAULT_ORC = 2  # Up to this version, a schema file without the option means file.format=orc.


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """One version of a table's schema. `options` is never modified; `time_millis` is in UTC."""

    id: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: Mapping[str, str] = field(hash=False, repr=False)
    comment: str | None = None
    time_millis: int = 0
    version: int = SCHEMA_VERSION
    #: The id and the checksum of the schema file that this schema was read from.
    read_from: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def file_checksum(self) -> int | None:
        """The checksum of its schema file; None for a schema that was not read from the file of its id."""
        return None if self.read_from is None or self.read_from[0] != self.id else self.read_from[1]

    @staticmethod
    def from_json(text: str | bytes, source: str = "schema file") -> TableSchema:
        """Parse a schema file and fill in the defaults of older versions.

        `source` names the file in errors. Raises CorruptTableError for invalid text, and UnsupportedFeatureError for a
        column type that lakelsm does not support.
        """
        try:
            return _from_document(parse_object(text, source))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise CorruptTableError(f"{source} is damaged: it is not a table schema ({error!r}).") from error

    def to_json(self) -> str:
        """Return the text of the schema file, with keys in Paimon's order."""
        document: dict[str, Any] = {
            "version": self.version,
            "id": self.id,
            "fields": [field_to_json(column) for column in self.fields],
            "highestFieldId": self.highest_field_id,
            "partitionKeys": list(self.partition_keys),
            "primaryKeys": list(self.primary_keys),
            "options": dict(self.options),
        }
        if self.comment is not None:
            document["comment"] = self.comment
        document["timeMillis"] = self.time_millis
        return json.dumps(document, indent=2, separators=(",", " : "), ensure_ascii=False)

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """The column names, in schema order."""
        return tuple(column.name for column in self.fields)

    @cached_property
    def _by_name(self) -> dict[str, DataField]:
        return {column.name: column for column in self.fields}

    def field(self, name: str) -> DataField:
        """Return the column of a name. Raises InvalidInputError with all columns if it is unknown."""
        found = self._by_name.get(name)
        if found is None:
            raise InvalidInputError(unknown_column(name, self.field_names))
        return found

    def column_name(self, name: str) -> str:
        """Return the name of a column given in any case, as in Spark. Raises InvalidInputError if it is unknown."""
        return self.field(match(name, self.field_names) or name).name

    @property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """The merge key: primary key columns without partition columns, in primary key order."""
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)

    @property
    def bucket_keys(self) -> tuple[str, ...]:
        """The columns that select the bucket: `bucket-key`, else the trimmed primary key."""
        named = tuple(name.strip() for name in self.options.get("bucket-key", "").split(",") if name.strip())
        return named or self.trimmed_primary_keys

    @property
    def cross_partition(self) -> bool:
        """Whether the rows of a key may be in several partitions: the primary key lacks a partition column."""
        return bool(self.primary_keys) and not set(self.partition_keys) <= set(self.primary_keys)

    @property
    def key_fields(self) -> tuple[DataField, ...]:
        """The `_KEY_<name>` columns of data files with their ids, in trimmed primary key order."""
        return tuple(
            DataField(KEY_FIELD_ID_START + column.id, KEY_FIELD_PREFIX + column.name, column.type)
            for column in map(self.field, self.trimmed_primary_keys)
        )

    @property
    def partition_fields(self) -> tuple[DataField, ...]:
        """The partition columns, in partition key order."""
        return tuple(map(self.field, self.partition_keys))

    def with_options(self, options: Mapping[str, str]) -> TableSchema:
        """Return the same schema with other options and the same id, in memory only."""
        return replace(self, options=dict(options))

    def __str__(self) -> str:
        """Return the columns as DDL, one per line, then the keys and the comment."""
        lines = [",\n".join(map(_column_ddl, self.fields))]
        for words, names in (("PRIMARY KEY", self.primary_keys), ("PARTITIONED BY", self.partition_keys)):
            lines += [f"{words} ({', '.join(map(_quoted, names))})"] if names else []
        return "\n".join(lines + ([] if self.comment is None else [f"COMMENT {_literal(self.comment)}"]))

    def __repr__(self) -> str:
        shown = [_column_ddl(column) for column in self.fields[:_MAX_SHOWN]]
        more = len(self.fields) - len(shown)
        columns = ", ".join([*shown, f"… {more} more"] if more else shown)
        keys = {"primary_key": self.primary_keys, "partition_by": self.partition_keys}
        named = [f"{key}={list(names)}" for key, names in keys.items() if names]
        return f"TableSchema({', '.join([repr(columns), *named])})"

    def _repr_html_(self) -> str:
        """Return the text of `str` as HTML, for notebooks."""
        return f"<pre>{escape(str(self))}</pre>"

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


def create_schema(
    columns: Sequence[DataField] | pa.Schema | str,
    primary_key: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    options: Mapping[str, object] | None = None,
    comment: str | None = None,
    now_millis: int = 0,
) -> TableSchema:
    """Return the first schema (id 0) of a table: field ids are assigned, and key columns are NOT NULL.

    The options `primary-key` and `partition` mean the same as the arguments, as in Paimon. With `primary-key.nullable`
    key columns become nullable. Raises InvalidInputError for wrong arguments, duplicate or missing columns, and a primary
    key of partition columns only; `schema.validation` checks the rest.
    """
    checked_text("comment", comment, "a text", optional=True, blank=True)
    kept = option_texts("options", options)
    primary = _keys("primary_key", primary_key, kept.pop("primary-key", None))
    partition = _keys("partition_by", partition_by, kept.pop("partition", None))
    given = _columns(columns)
    _check_texts(given)
    fields, highest = assign_field_ids(given)
    check_columns(fields, primary, partition)
    check_new_names(fields)
    nullable = kept.get("primary-key.nullable", "false").strip().lower() == "true"
    fields = tuple(
        replace(column, type=column.type.with_nullable(nullable)) if column.name in primary else column
        for column in fields
    )
    return TableSchema(
        id=0,
        fields=fields,
        highest_field_id=highest,
        partition_keys=partition,
        primary_keys=primary,
        options=kept,
        comment=comment,
        time_millis=now_millis,
    )


def _column_ddl(column: DataField) -> str:
    """Return a column as DDL, as `create_table` accepts it."""
    default = "" if column.default_value is None else f" DEFAULT {_literal(column.default_value)}"
    comment = "" if column.description is None else f" COMMENT {_literal(column.description)}"
    return f"{_quoted(column.name)} {column.type.sql()}{default}{comment}"


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def assign_field_ids(
    columns: Sequence[DataField], highest: int = UNASSIGNED_ID
) -> tuple[tuple[DataField, ...], int]:
    """Assign new ids to columns. Returns the columns and the highest id.

    Ids increase from `highest`; those inside a column follow its own. A member of a ROW gets its id after the members
    within it, as in Paimon.
    """
    numbered: list[DataField] = []
    for column in columns:
        own_id = highest + 1
        data_type, highest = _number_type(column.type, own_id)
        numbered.append(replace(column, id=own_id, type=data_type))
    return tuple(numbered), highest


def _number_type(data_type: DataType, highest: int) -> tuple[DataType, int]:
    if isinstance(data_type, RowType):
        members: list[DataField] = []
        for member in data_type.fields:
            member_type, highest = _number_type(member.type, highest)
            highest += 1
            members.append(replace(member, id=highest, type=member_type))
        return replace(data_type, fields=tuple(members)), highest
    if isinstance(data_type, (ArrayType, MultisetType, VectorType)):
        element, highest = _number_type(data_type.element, highest)
        return replace(data_type, element=element), highest
    if isinstance(data_type, MapType):
        key, highest = _number_type(data_type.key, highest)
        value, highest = _number_type(data_type.value, highest)
        return replace(data_type, key=key, value=value), highest
    return data_type, highest


def check_unique(names: Sequence[str], what: str) -> None:
    """Raise InvalidInputError for names that occur more than once."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InvalidInputError(f"duplicate {what} {', '.join(twice)}. Name each one once.")


def _columns(columns: Sequence[DataField] | pa.Schema | str) -> tuple[DataField, ...]:
    if isinstance(columns, str):
        return parse_columns(checked_text("schema", columns, "DDL text such as 'id INT, v STRING'", blank=True))
    if isinstance(columns, pa.Schema):
        return tuple(field_from_arrow(column) for column in columns)
    if isinstance(columns, Sequence) and all(isinstance(column, DataField) for column in columns):
        return tuple(columns)
    raise InvalidInputError(
        f"schema: expected a DDL text, a pyarrow.Schema or a list of DataFields, got {type(columns).__name__}."
    )


def _check_texts(columns: Sequence[DataField]) -> None:
    """Raise InvalidInputError for names and comments that are not texts, and types that are not a DataType."""
    for column in columns:
        checked_text("the name of a column", column.name, "a text", blank=True)
        checked_text(f"the comment of column '{column.name}'", column.description, "a text", optional=True, blank=True)
        _check_type(column)
        if isinstance(column.type, RowType):
            _check_texts(column.type.fields)


def _check_type(column: DataField) -> None:
    kind: object = column.type
    if not isinstance(kind, DataType):
        raise wrong_argument(f"the type of column '{column.name}'", kind, "a DataType, for example of parse_type('INT')")


def _keys(argument: str, names: Sequence[str], from_option: str | None) -> tuple[str, ...]:
    names = checked_names(argument, names)
    if from_option is None:
        return tuple(names)
    if names:
        raise InvalidInputError(f"{argument}: an option also sets it. Remove the option.")
    return tuple(name.strip() for name in from_option.split(",") if name.strip())


def check_columns(fields: Sequence[DataField], primary: Sequence[str], partition: Sequence[str]) -> None:
    """Raise InvalidInputError for no columns, duplicate names, and unknown key columns."""
    if not fields:
        raise InvalidInputError("schema: a table needs at least one column.")
    names = [column.name for column in fields]
    check_unique(names, "column")
    for column in fields:
        check_nesting(column.name, column.type)
        _check_members(column.name, column.type)
    for what, keys in (("primary key", primary), ("partition", partition)):
        check_unique(keys, f"{what} column")
        missing = [name for name in keys if name not in names]
        if missing:
            raise InvalidInputError(f"{what}: {unknown_column(missing[0], names)}")
    if primary and set(primary) <= set(partition):
        raise InvalidInputError(
            f"primary key {list(primary)} has only partition columns, so that a partition would have one row. Add "
            "another column."
        )


def check_new_names(fields: Sequence[DataField], what: str = "column") -> None:
    """Raise InvalidInputError for invalid names of new columns and their members."""
    for column in fields:
        check_new_name(column.name, what)
        for members in nested_row_fields(column.type):
            check_new_names(members, f"member of '{column.name}'")


def _check_members(path: str, data_type: DataType) -> None:
    for members in nested_row_fields(data_type):
        check_unique([member.name for member in members], f"member of column '{path}':")
        for member in members:
            _check_members(f"{path}.{member.name}", member.type)


def _from_document(document: Mapping[str, Any]) -> TableSchema:
    version = int(document.get("version", 1))
    options = {str(key): str(value) for key, value in (document.get("options") or {}).items()}
    if version <= _VERSION_BUCKET_DEFAULT_ONE:
        options.setdefault("bucket", "1")
    if version <= _VERSION_FORMAT_DEFAULT_ORC:
        options.setdefault("file.format", "orc")
    fields = tuple(field_from_json(column) for column in document["fields"])
    check_unique([column.name for column in fields], "column")
    check_unique([str(column.id) for column in fields], "column id")
    for column in fields:
        check_nesting(column.name, column.type)
    return TableSchema(
        id=int(document["id"]),
        fields=fields,
        highest_field_id=int(document["highestFieldId"]),
        partition_keys=_texts(document["partitionKeys"]),
        primary_keys=_texts(document["primaryKeys"]),
        options=options,
        comment=document.get("comment"),
        time_millis=int(document.get("timeMillis") or 0),
        version=version,
    )


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{values!r} is not a list of column names")
    return tuple(values)


def column_mapping(
    file_schema: TableSchema, table_schema: TableSchema
) -> list[tuple[DataField, DataField | None]]:
    """Return each column of the table with the file's column of the same id, or None, in the table's order.

    The file's column has the name to read and the type to cast from. A column without one reads as NULL.
    """
    by_id = {column.id: column for column in file_schema.fields}
    return [(column, by_id.get(column.id)) for column in table_schema.fields]
