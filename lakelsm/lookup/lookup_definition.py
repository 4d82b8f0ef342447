"""A lookup as the user defines it, its freshness, and the definition resolved for the present state of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from lakelsm.arguments import (
    checked_choice,
    checked_condition,
    checked_seconds,
    checked_text,
    invalid_argument,
    option_texts,
    wrong_argument,
)
from lakelsm.environment import Environment
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError, error_context
from lakelsm.format.row.binary_row import decode_rows, encode_row
from lakelsm.format.snapshot import Snapshot
from lakelsm.local.local_engine import LocalEngine
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.lookup_keys import LookupKeys
from lakelsm.merge.key_order import order_keys, stable_order
from lakelsm.options import OPTIONS, LookupCache, TableOptions
from lakelsm.options.lookup_options import LookupOptions
from lakelsm.plan.fallback_branch import refuse_fallback
from lakelsm.plan.overwrite_plan import checked_partition
from lakelsm.predicate.predicate import Compare, Constant, IsNull, Predicate, all_of, any_of, columns
from lakelsm.schema.identifiers import match
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.manifest_scan import read_live_counts
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataType, has_nanoseconds, to_arrow

_MAX_PT = "max_pt()"
_GREATEST = {_MAX_PT: 1, "max_two_pt()": 2}
_WANTED = "Write 'dt=2026-01-01;dt=2026-01-02', 'max_pt()', 'max_two_pt()' or 'year=max_pt(),month=max_pt()'"
_HOW = "'left' or 'inner'"
_CACHES = tuple(kind.value for kind in LookupCache)
_INTERVALS = ("lookup.continuous.discovery-interval", "continuous.discovery-interval")
#: The ``refresh`` of a lookup that checks for newer snapshots only when `Lookup.refresh` is called.
_NEVER = "never"
_KEYS = {
    key: option.key
    for option in (OPTIONS[field.metadata["option"].key] for field in fields(LookupOptions))
    for key in (option.key, *option.fallback_keys)
}


@dataclass(frozen=True, kw_only=True)
class RefreshPolicy:
    """The policy that keeps a lookup fresh.

    ``interval``: seconds between checks for a newer snapshot (0: before each lookup, None: never).
    ``in_background``: lookups answer from the older snapshot during a refresh, unless that is more than
    ``max_pending`` snapshots behind. ``quiet``: periods without refreshes, as `lakelsm.options` parses them.
    ``partition_interval``: seconds between checks for the greatest partitions.
    """

    interval: float | None
    in_background: bool = False
    max_pending: int = 0
    quiet: tuple[tuple[int, int], ...] = ()
    partition_interval: float = 0.0

    @staticmethod
    def of(options: TableOptions) -> RefreshPolicy:
        """Return the policy of a table's options."""
        return RefreshPolicy(
            interval=discovery_interval(options),
            in_background=options.lookup_refresh_async,
            max_pending=options.lookup_refresh_async_pending_snapshot_count,
            quiet=options.lookup_refresh_time_periods_blacklist,
            partition_interval=options.lookup_dynamic_partition_refresh_interval / 1000,
        )

    def is_quiet(self, environment: Environment) -> bool:
        """Return whether the local time is in a period without refreshes."""
        if not self.quiet:
            return False
        now = environment.local_wall_clock(environment.clock())
        return any(first <= now <= last for first, last in self.quiet)


def discovery_interval(options: TableOptions) -> float:
    """Return the seconds between checks for a newer snapshot, from a table's options."""
    own = options.lookup_continuous_discovery_interval
    return (options.continuous_discovery_interval if own is None else own) / 1000


@dataclass(frozen=True)
class PartitionChoice:
    """The partitions that an option chooses: the ``named`` ones, or (None) those with the greatest values of the first
    ``levels`` partition columns; ``greatest`` is the number of these values.
    """

    named: tuple[bytes, ...] | None
    _: KW_ONLY
    greatest: int = 1
    levels: int = 0

    @staticmethod
    def of(store: TableStore) -> PartitionChoice | None:
        """Return the choice of a table; None without one. Raises InvalidInputError for an option that does not fit."""
        text = store.options.scan_partitions
        if text is None:
            return None
        option = f"option 'scan.partitions' = '{text}'"
        keys = store.schema.partition_keys
        if not keys:
            raise InvalidInputError(f"{option}: table {store.name} has no partitions. Leave the option out.")
        greatest = _GREATEST.get(text.strip().lower())
        if greatest is not None:
            return PartitionChoice(None, greatest=greatest, levels=len(keys))
        with error_context(option):
            specs = [_values(part, keys) for part in text.strip().rstrip(";").split(";")]
            if any(value.lower() in _GREATEST for spec in specs for value in spec.values()):
                return PartitionChoice(None, levels=_levels(specs, keys))
            return PartitionChoice(tuple(dict.fromkeys(_named(store, spec) for spec in specs)))

    @property
    def may_change(self) -> bool:
        """Whether a newer snapshot may have other chosen partitions."""
        return self.named is None

    def has_one_partition(self, store: TableStore) -> bool:
        """Return whether at most one partition is ever chosen."""
        is_one = self.greatest == 1 and self.levels == len(store.schema.partition_keys)
        return is_one if self.named is None else len(self.named) == 1

    def partitions(self, store: TableStore, snapshot: Snapshot | None) -> tuple[bytes, ...]:
        """Return the chosen partitions of a snapshot (None: an empty table), greatest first."""
        if self.named is not None:
            return self.named
        codes: dict[bytes, None] = {}
        for batch, rows in () if snapshot is None else read_live_counts(store.file_io, store.paths, snapshot):
            codes.update((batch.partitions[code], None) for code in np.unique(batch.partition_codes[rows]).tolist())
        found = list(codes)
        if not found:
            return ()
        columns = decode_rows(found, store.partition_types)
        leading = order_keys(columns[: self.levels])
        kept = np.isin(leading, np.unique(leading)[-self.greatest :])
        descending = stable_order(order_keys(columns))[::-1]
        return tuple(found[at] for at in descending.tolist() if kept[at])


def partition_condition(store: TableStore, partitions: Sequence[bytes]) -> Predicate:
    """Return a condition that is true for all rows of some partitions, and for no others."""
    if not partitions:
        return Constant(False)
    names = store.schema.partition_keys
    for field in map(store.schema.field, names):
        if has_nanoseconds(field.type) or field.type.root in ("FLOAT", "DOUBLE"):
            raise UnsupportedFeatureError(
                f"Table {store.name}: option 'scan.partitions' is not supported for partition column '{field.name}' "
                f"({field.type.sql()}). Leave the option out."
            )
    rows = store.comparable_partitions(partitions)
    return any_of(
        all_of(IsNull(name) if value is None else Compare(name, "=", value) for name, value in zip(names, row))
        for row in rows
    )


def _values(text: str, keys: Sequence[str]) -> dict[str, str]:
    """Parse 'a=x,b=y': return the texts of the partition columns."""
    values: dict[str, str] = {}
    for part in text.split(","):
        found = re.fullmatch(r"\s*([^=]*[^=\s])\s*=(.*)", part, re.DOTALL)
        if found is None:
            raise InvalidInputError(f"'{part.strip()}' is not a partition. {_WANTED}.")
        name = match(found[1], keys)
        if name is None:
            raise InvalidInputError(f"'{found[1]}' is not a partition column. Partition columns: {', '.join(keys)}.")
        if name in values:
            raise InvalidInputError(f"'{text.strip()}' names '{name}' twice. Name it once.")
        values[name] = found[2].strip()
    return values


def _named(store: TableStore, values: dict[str, str]) -> bytes:
    keys = store.schema.partition_keys
    missing = [name for name in keys if name not in values]
    if missing:
        raise InvalidInputError(f"partition column {', '.join(missing)} is missing. Name all of {', '.join(keys)}.")
    found = checked_partition(store, values)
    return encode_row([found[name] for name in keys], store.partition_types)


def _levels(specs: Sequence[dict[str, str]], keys: Sequence[str]) -> int:
    """Return how many leading columns must have their greatest values."""
    values = specs[0]
    if len(specs) > 1 or any(value.lower() != _MAX_PT for value in values.values()):
        raise InvalidInputError(f"'{_MAX_PT}' must be the value of each named column, in one partition. {_WANTED}.")
    if set(values) != set(keys[: len(values)]):
        raise InvalidInputError(f"the named columns are not the first ones of the partition columns {', '.join(keys)}.")
    return len(values)


@dataclass(frozen=True)
class LookupDefinition:
    """The ``columns`` (None: all) of rows found by a ``key`` (None: the primary key), as the user names them.

    ``where``: only rows for which it is true are found. ``options`` of the call override those of the table.
    """

    columns: tuple[str, ...] | None = None
    _: KW_ONLY
    key: tuple[str, ...] | None = None
    where: str | None = None
    options: Mapping[str, str]

    def of_table(self, store: TableStore) -> DefinedLookup:
        """Resolve the definition for a table. Raises InvalidInputError for columns and options that do not fit it."""
        schema = store.schema
        refuse_fallback(store, "lookups")
        if self.options:
            store = store.with_schema(schema.with_options({**_without_fallbacks(schema), **self.options}))
        choice = PartitionChoice.of(store)
        with error_context(f"Table {store.name}"):
            found = [schema.column_name(name) for name in self.columns or schema.field_names]
            if self.key is not None:
                key = [schema.column_name(name) for name in self.key]
            else:
                key = list(schema.primary_keys if choice is None else schema.trimmed_primary_keys)
            for argument, names in (("columns", found), ("key", key)):
                if len(set(names)) < len(names):
                    raise InvalidInputError(f"{argument}: {', '.join(names)} has a column twice. Name each column once.")
            LookupKeys.of(schema, key)
        condition = LocalEngine().evaluable_predicate(store, self.where)
        labels = tuple(self.columns or found)
        return DefinedLookup(store, tuple(key), tuple(found), labels=labels, condition=condition, choice=choice)


@dataclass(frozen=True)
class DefinedLookup:
    """A definition resolved for a table: ``labels`` are the user's names of the ``columns``."""

    store: TableStore
    key: tuple[str, ...]
    columns: tuple[str, ...]
    _: KW_ONLY
    labels: tuple[str, ...]
    condition: Predicate | None
    choice: PartitionChoice | None

    @property
    def adds_partitions(self) -> bool:
        """Whether the key lacks partition columns, and is the primary key together with the chosen partitions."""
        schema = self.store.schema
        is_primary = not schema.cross_partition and set(self.key) == set(schema.trimmed_primary_keys)
        return self.choice is not None and is_primary

    @cached_property
    def is_nested(self) -> bool:
        """Whether a column has nested, and so mutable, values."""
        return any(pa.types.is_nested(to_arrow(self.store.schema.field(name).type)) for name in self.columns)

    @cached_property
    def has_one_row_per_key(self) -> bool:
        """Whether a key has at most one row."""
        schema, known = self.store.schema, set(self.key)
        if self.choice is not None and self.choice.has_one_partition(self.store):
            known |= set(schema.partition_keys)
        return {*schema.primary_keys, *schema.partition_keys} <= known

    def partitions(self) -> tuple[bytes, ...] | None:
        """Return the chosen partitions of the newest snapshot, greatest first (None: all)."""
        choice, store = self.choice, self.store
        if choice is None:
            return None

        def chosen() -> tuple[bytes, ...]:
            newest = store.snapshots.latest()
            with store.while_read(newest):
                return choice.partitions(store, newest)

        return store.run_on_newest(chosen)

    def spec(self, partitions: tuple[bytes, ...] | None) -> LookupSpec:
        """Return the request to a cache, for ``partitions`` (None: all)."""
        key, conditions = self.key, [] if self.condition is None else [self.condition]
        if partitions is not None:
            conditions.append(partition_condition(self.store, partitions))
            if self.adds_partitions:
                key = (*key, *self.store.schema.partition_keys)
        return LookupSpec(self.store, key, self.columns, predicate=all_of(conditions) if conditions else None)

    def matches(self, other: DefinedLookup) -> bool:
        """Return whether the cache of another resolved definition can answer this one."""
        requests = [(each.key, each.columns, each.condition, each.choice) for each in (self, other)]
        return requests[0] == requests[1] and _read_fields(self) == _read_fields(other)


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
    """Check the arguments of a call; return what is looked up, and how it is kept fresh.

    Raises InvalidInputError for invalid arguments, and if the table cannot answer.
    """
    texts = _call_options(options, cache, refresh)
    definition = LookupDefinition(columns, key=key, where=checked_condition(where), options=texts)
    policy = RefreshPolicy.of(definition.of_table(store).store.options)
    return definition, policy if refresh is None else replace(policy, interval=_interval(refresh))


def checked_inner(how: object) -> bool:
    """Return whether rows without a match are left out ('inner') or kept with NULL ('left')."""
    if checked_text("how", how, _HOW) not in ("left", "inner"):
        raise wrong_argument("how", how, _HOW)
    return how == "inner"


def checked_lookup_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a lookup by their main keys. Raises InvalidInputError for other options."""
    unknown = next((key for key in options if key not in _KEYS), None)
    if unknown is not None:
        raise invalid_argument("options", f"{unknown!r} is not an option of lookups.", "docs/lookup.md lists them.")
    found = {_KEYS[key]: text for key, text in options.items()}
    if len(found) < len(options):
        raise invalid_argument("options", "one option is given by two of its keys.", "Use one key for each option.")
    return found


def _call_options(options: object, cache: str | None, refresh: object) -> Mapping[str, str]:
    """Return the options of the call, with ``cache``. Raises InvalidInputError if an argument and an option conflict."""
    texts = checked_lookup_options(option_texts("options", options))
    twice = [name for name in texts if cache is not None and name == "lookup.cache"]
    twice += [name for name in texts if refresh is not None and name in _INTERVALS]
    if twice:
        argument = "cache" if twice[0] == "lookup.cache" else "refresh"
        raise invalid_argument("options", f"{twice[0]!r} is the same setting as {argument}.", "Pass one of the two.")
    return texts if checked_choice("cache", cache, _CACHES) is None else {**texts, "lookup.cache": str(cache)}


def _interval(refresh: object) -> float | None:
    if isinstance(refresh, str) and refresh.strip().lower() == _NEVER:
        return None
    try:
        return checked_seconds("refresh", refresh)  # type: ignore[arg-type]
    except ValueError:
        wanted = f"seconds, a duration such as '10 s', 0 to check before each lookup, or '{_NEVER}'"
        raise wrong_argument("refresh", refresh, wanted) from None


def _read_fields(lookup: DefinedLookup) -> list[tuple[int, DataType]]:
    schema = lookup.store.schema
    judged = () if lookup.condition is None else sorted(columns(lookup.condition))
    read = map(schema.field, (*schema.primary_keys, *lookup.key, *lookup.columns, *judged))
    return [(field.id, field.type) for field in read]


def _without_fallbacks(schema: TableSchema) -> dict[str, str]:
    """Return the table's options, with main keys instead of fallback keys for those of lookups."""
    main = {_KEYS.get(key, key): text for key, text in schema.options.items()}
    return {**main, **{key: text for key, text in schema.options.items() if key in main}}
