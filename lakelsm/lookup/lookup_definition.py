"""What a user asks a lookup for, in the user's words; and what that is for a table as it is now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields

from lakelsm.arguments import checked_text, wrong_argument
from lakelsm.errors import InvalidInputError, told_of
from lakelsm.local.local_engine import LocalEngine
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.lookup_keys import LookupKeys
from lakelsm.lookup.partition_choice import PartitionChoice, partition_condition
from lakelsm.options import OPTIONS
from lakelsm.options.lookup_options import LookupOptions
from lakelsm.plan.fallback_branch import refuse_fallback
from lakelsm.predicate.predicate import Predicate, all_of, columns
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataType

_HOW = "'left' or 'inner'"
_KEYS = {
    key: option.key
    for option in (OPTIONS[field.metadata["option"].key] for field in fields(LookupOptions))
    for key in (option.key, *option.fallback_keys)
}


def checked_lookup_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options of one lookup by their main keys. Raises InvalidInputError for those of anything else."""
    unknown = next((key for key in options if key not in _KEYS), None)
    if unknown is not None:
        raise wrong_argument("options", options, f"options of lookups (docs/lookup.md), and '{unknown}' is none")
    found = {_KEYS[key]: text for key, text in options.items()}
    if len(found) < len(options):
        raise wrong_argument("options", options, "options by one of their keys each")
    return found


def checked_inner(how: object) -> bool:
    """Whether what has no row is left out ('inner') or kept with NULL ('left')."""
    if checked_text("how", how, _HOW) not in ("left", "inner"):
        raise wrong_argument("how", how, _HOW)
    return how == "inner"


@dataclass(frozen=True)
class LookupDefinition:
    """The ``columns`` (None: all) of rows found by a ``key`` (None: the primary key), as the user names them.

    ``where``: only rows for which it is true are found. ``options`` are those of the call, on top of the table's.
    """

    columns: tuple[str, ...] | None = None
    _: KW_ONLY
    key: tuple[str, ...] | None = None
    where: str | None = None
    options: Mapping[str, str]

    def of_table(self, table: TableStore) -> DefinedLookup:
        """What it is for a table. Raises InvalidInputError for columns and options that it does not have."""
        schema = table.schema
        refuse_fallback(table, "lookups")
        if self.options:
            table = table.with_schema(schema.with_options({**_without_fallbacks(schema), **self.options}))
        choice = PartitionChoice.of(table)
        with told_of(f"Table {table.name}"):
            found = [schema.column_name(name) for name in self.columns or schema.field_names]
            if self.key is not None:
                key = [schema.column_name(name) for name in self.key]
            elif choice is None:
                key = list(schema.primary_keys)
            else:
                key = list(schema.trimmed_primary_keys)
            for argument, names in (("columns", found), ("key", key)):
                if len(set(names)) < len(names):
                    raise InvalidInputError(f"{argument} names {', '.join(names)}: name each column once.")
            LookupKeys.of(schema, key)
        condition = LocalEngine().exact(table, self.where)
        labels = tuple(self.columns or found)
        return DefinedLookup(table, tuple(key), tuple(found), labels=labels, condition=condition, choice=choice)


@dataclass(frozen=True)
class DefinedLookup:
    """A definition on a table as it is: ``labels`` are what the user calls the ``columns``."""

    table: TableStore
    key: tuple[str, ...]
    columns: tuple[str, ...]
    _: KW_ONLY
    labels: tuple[str, ...]
    condition: Predicate | None
    choice: PartitionChoice | None

    @property
    def adds_partitions(self) -> bool:
        """Whether the key leaves out partition columns, and is a primary key with those of the chosen partitions."""
        schema = self.table.schema
        return (
            self.choice is not None
            and not schema.cross_partition
            and set(self.key) == set(schema.trimmed_primary_keys)
        )

    @property
    def one_row_a_key(self) -> bool:
        """Whether a key never has more than one row."""
        schema, known = self.table.schema, set(self.key)
        if self.choice is not None and self.choice.one_at_most(self.table):
            known |= set(schema.partition_keys)
        return {*schema.primary_keys, *schema.partition_keys} <= known

    def spec(self, partitions: tuple[bytes, ...] | None) -> LookupSpec:
        """What a cache is asked for, where the ``partitions`` are chosen (None: all are)."""
        key, conditions = self.key, [] if self.condition is None else [self.condition]
        if partitions is not None:
            conditions.append(partition_condition(self.table, partitions))
            if self.adds_partitions:
                key = (*key, *self.table.schema.partition_keys)
        return LookupSpec(self.table, key, self.columns, predicate=all_of(conditions) if conditions else None)

    def is_as_before(self, other: DefinedLookup) -> bool:
        """Whether a cache made for another state of the table's schema answers this too."""
        asked = [(each.key, each.columns, each.condition, each.choice) for each in (self, other)]
        return asked[0] == asked[1] and _read_fields(self) == _read_fields(other)


def _read_fields(lookup: DefinedLookup) -> list[tuple[int, DataType]]:
    schema = lookup.table.schema
    judged = () if lookup.condition is None else sorted(columns(lookup.condition))
    read = map(schema.field, (*schema.primary_keys, *lookup.key, *lookup.columns, *judged))
    return [(field.id, field.type) for field in read]


def _without_fallbacks(schema: TableSchema) -> dict[str, str]:
    """The table's options, those of lookups by their main keys."""
    main = {_KEYS.get(key, key): text for key, text in schema.options.items()}
    return {**main, **{key: text for key, text in schema.options.items() if key in main}}
