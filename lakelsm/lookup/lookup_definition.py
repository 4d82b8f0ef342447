"""What a user asks a lookup for, in the user's words and how fresh; and what that is for a table as it is now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property

import pyarrow as pa

from lakelsm.arguments import (
    checked_choice,
    checked_condition,
    checked_seconds,
    checked_text,
    option_texts,
    wrong_argument,
)
from lakelsm.errors import InvalidInputError, told_of
from lakelsm.local.local_engine import LocalEngine
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.lookup_keys import LookupKeys
from lakelsm.lookup.partition_choice import PartitionChoice, partition_condition
from lakelsm.options import OPTIONS, LookupCache, TableOptions
from lakelsm.options.lookup_options import LookupOptions
from lakelsm.plan.fallback_branch import refuse_fallback
from lakelsm.predicate.predicate import Predicate, all_of, columns
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.surroundings import Surroundings
from lakelsm.types import DataType, to_arrow

_HOW = "'left' or 'inner'"
_CACHES = tuple(kind.value for kind in LookupCache)
_INTERVALS = ("lookup.continuous.discovery-interval", "continuous.discovery-interval")
#: The ``refresh`` of a lookup that looks for newer snapshots only when `Lookup.refresh` is called.
_NEVER = "never"
_KEYS = {
    key: option.key
    for option in (OPTIONS[field.metadata["option"].key] for field in fields(LookupOptions))
    for key in (option.key, *option.fallback_keys)
}


@dataclass(frozen=True, kw_only=True)
class RefreshPolicy:
    """How lookups are kept fresh.

    ``interval``: seconds between two looks for a newer snapshot (0: each lookup looks, None: none does).
    ``in_background``: during a refresh lookups answer from the snapshot before, unless that is more than
    ``most_pending`` snapshots behind. ``quiet``: periods without a refresh, as `lakelsm.options` parses them.
    ``partition_interval``: seconds between two looks for the greatest partitions.
    """

    interval: float | None
    in_background: bool = False
    most_pending: int = 0
    quiet: tuple[tuple[int, int], ...] = ()
    partition_interval: float = 0.0

    @staticmethod
    def of(options: TableOptions) -> RefreshPolicy:
        """The policy that a table's options ask for."""
        return RefreshPolicy(
            interval=discovery_interval(options),
            in_background=options.lookup_refresh_async,
            most_pending=options.lookup_refresh_async_pending_snapshot_count,
            quiet=options.lookup_refresh_time_periods_blacklist,
            partition_interval=options.lookup_dynamic_partition_refresh_interval / 1000,
        )

    def is_quiet(self, surroundings: Surroundings) -> bool:
        """Whether the local clock shows a time at which nothing is refreshed."""
        if not self.quiet:
            return False
        now = surroundings.local_wall_clock(surroundings.clock())
        return any(first <= now <= last for first, last in self.quiet)


def discovery_interval(options: TableOptions) -> float:
    """Seconds between two looks for a newer snapshot, as a table's options say."""
    own = options.lookup_continuous_discovery_interval
    return (options.continuous_discovery_interval if own is None else own) / 1000


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

    def of_table(self, store: TableStore) -> DefinedLookup:
        """What it is for a table. Raises InvalidInputError for columns and options that it does not have."""
        schema = store.schema
        refuse_fallback(store, "lookups")
        if self.options:
            store = store.with_schema(schema.with_options({**_without_fallbacks(schema), **self.options}))
        choice = PartitionChoice.of(store)
        with told_of(f"Table {store.name}"):
            found = [schema.column_name(name) for name in self.columns or schema.field_names]
            if self.key is not None:
                key = [schema.column_name(name) for name in self.key]
            else:
                key = list(schema.primary_keys if choice is None else schema.trimmed_primary_keys)
            for argument, names in (("columns", found), ("key", key)):
                if len(set(names)) < len(names):
                    raise InvalidInputError(f"{argument} names {', '.join(names)}: name each column once.")
            LookupKeys.of(schema, key)
        condition = LocalEngine().exact(store, self.where)
        labels = tuple(self.columns or found)
        return DefinedLookup(store, tuple(key), tuple(found), labels=labels, condition=condition, choice=choice)


@dataclass(frozen=True)
class DefinedLookup:
    """A definition on a table as it is: ``labels`` are what the user calls the ``columns``."""

    store: TableStore
    key: tuple[str, ...]
    columns: tuple[str, ...]
    _: KW_ONLY
    labels: tuple[str, ...]
    condition: Predicate | None
    choice: PartitionChoice | None

    @property
    def adds_partitions(self) -> bool:
        """Whether the key leaves out partition columns, and is a primary key with those of the chosen partitions."""
        schema = self.store.schema
        is_primary = not schema.cross_partition and set(self.key) == set(schema.trimmed_primary_keys)
        return self.choice is not None and is_primary

    @cached_property
    def is_nested(self) -> bool:
        """Whether a column has values that can be changed in place."""
        return any(pa.types.is_nested(to_arrow(self.store.schema.field(name).type)) for name in self.columns)

    @cached_property
    def one_row_a_key(self) -> bool:
        """Whether a key never has more than one row."""
        schema, known = self.store.schema, set(self.key)
        if self.choice is not None and self.choice.one_at_most(self.store):
            known |= set(schema.partition_keys)
        return {*schema.primary_keys, *schema.partition_keys} <= known

    def partitions(self) -> tuple[bytes, ...] | None:
        """The partitions that are chosen of the newest snapshot, greatest first (None: all are)."""
        return None if self.choice is None else self.choice.partitions(self.store, self.store.snapshots.latest())

    def spec(self, partitions: tuple[bytes, ...] | None) -> LookupSpec:
        """What a cache is asked for, where the ``partitions`` are chosen (None: all are)."""
        key, conditions = self.key, [] if self.condition is None else [self.condition]
        if partitions is not None:
            conditions.append(partition_condition(self.store, partitions))
            if self.adds_partitions:
                key = (*key, *self.store.schema.partition_keys)
        return LookupSpec(self.store, key, self.columns, predicate=all_of(conditions) if conditions else None)

    def is_as_before(self, other: DefinedLookup) -> bool:
        """Whether a cache made for another state of the table's schema answers this too."""
        asked = [(each.key, each.columns, each.condition, each.choice) for each in (self, other)]
        return asked[0] == asked[1] and _read_fields(self) == _read_fields(other)


def checked_lookup(
    store: TableStore,
    columns: tuple[str, ...] | None,
    key: tuple[str, ...] | None,
    *,
    where: str | None,
    refresh: object,
    cache: str | None,
    options: object,
) -> tuple[LookupDefinition, RefreshPolicy]:
    """The arguments of a call: what is looked up, and how it is kept fresh.

    Raises InvalidInputError for arguments of other kinds, and where the table cannot answer.
    """
    texts = _call_options(options, cache, refresh)
    definition = LookupDefinition(columns, key=key, where=checked_condition(where), options=texts)
    policy = RefreshPolicy.of(definition.of_table(store).store.options)
    return definition, policy if refresh is None else replace(policy, interval=_interval(refresh))


def checked_inner(how: object) -> bool:
    """Whether what has no row is left out ('inner') or kept with NULL ('left')."""
    if checked_text("how", how, _HOW) not in ("left", "inner"):
        raise wrong_argument("how", how, _HOW)
    return how == "inner"


def checked_lookup_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options of one lookup by their main keys. Raises InvalidInputError for those of anything else."""
    unknown = next((key for key in options if key not in _KEYS), None)
    if unknown is not None:
        raise wrong_argument("options", options, f"options of lookups (docs/lookup.md), and '{unknown}' is none")
    found = {_KEYS[key]: text for key, text in options.items()}
    if len(found) < len(options):
        raise wrong_argument("options", options, "options by one of their keys each")
    return found


def _call_options(options: object, cache: str | None, refresh: object) -> Mapping[str, str]:
    """The options of the call with ``cache`` among them. An option and an argument that mean the same are refused."""
    texts = checked_lookup_options(option_texts("options", options))
    twice = [name for name in texts if cache is not None and name == "lookup.cache"]
    twice += [name for name in texts if refresh is not None and name in _INTERVALS]
    if twice:
        argument = "cache" if twice[0] == "lookup.cache" else "refresh"
        raise wrong_argument("options", options, f"without '{twice[0]}' where {argument} is given: pass one of the two")
    return texts if checked_choice("cache", cache, _CACHES) is None else {**texts, "lookup.cache": str(cache)}


def _interval(refresh: object) -> float | None:
    if isinstance(refresh, str) and refresh.strip().lower() == _NEVER:
        return None
    try:
        return checked_seconds("refresh", refresh)  # type: ignore[arg-type]
    except ValueError:
        wanted = f"seconds, a duration such as '10 s', 0 to look before each lookup, or '{_NEVER}'"
        raise wrong_argument("refresh", refresh, wanted) from None


def _read_fields(lookup: DefinedLookup) -> list[tuple[int, DataType]]:
    schema = lookup.store.schema
    judged = () if lookup.condition is None else sorted(columns(lookup.condition))
    read = map(schema.field, (*schema.primary_keys, *lookup.key, *lookup.columns, *judged))
    return [(field.id, field.type) for field in read]


def _without_fallbacks(schema: TableSchema) -> dict[str, str]:
    """The table's options, those of lookups by their main keys."""
    main = {_KEYS.get(key, key): text for key, text in schema.options.items()}
    return {**main, **{key: text for key, text in schema.options.items() if key in main}}
