"""The merge rules of a table, frozen and picklable: the engine, its options, and one rule for each column."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass, replace

from lakelsm.options import MergeEngine, TableOptions
from lakelsm.options.option_values import parse_boolean, parse_names
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema

LAST_VALUE = "last_value"
LAST_NON_NULL_VALUE = "last_non_null_value"
PRIMARY_KEY = "primary-key"
_NO_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class ColumnRule:
    """The rule by which the values of one column merge.

    ``function`` is the aggregate function, None for a column of `partial-update` without one. ``not_null``: the column
    is NOT NULL. The other attributes are the column's options (``fields.<column>.<option>``).
    """

    name: str
    function: str | None = None
    _: KW_ONLY
    ignore_retract: bool = False
    not_null: bool = False
    delimiter: str = ","
    distinct: bool = False
    nested_key: tuple[str, ...] = ()
    nested_sequence: tuple[str, ...] = ()
    null_strategy: str = "merge"
    count_limit: int = _NO_LIMIT
    time_member: str | None = None


@dataclass(frozen=True)
class SequenceGroup:
    """A sequence group of `partial-update`: the ``sequence`` columns order the updates of the ``governed`` columns."""

    sequence: tuple[str, ...]
    governed: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose updates the sequence orders, with the sequence columns themselves."""
        return (*self.governed, *self.sequence)


@dataclass(frozen=True)
class MergeSpec:
    """The merge rules of a table.

    ``key_columns`` are the trimmed primary key. ``sequence_columns`` (``sequence.field``) decide before the sequence
    number; with ``sequence_descending`` the smallest value wins. ``ignore_delete`` drops retractions (-U and -D) before
    the merge. ``columns`` has a rule for each column outside of the primary key (engines `partial-update` and
    `aggregation`). ``remove_on_delete`` and ``remove_on_groups`` (sequence columns) decide when a -D removes the row.
    With ``lookup`` a row above level 0 includes the rows of its key on higher levels (see `lakelsm.merge.key_levels`),
    and engines that combine rows must not merge these twice.
    """

    key_columns: tuple[str, ...]
    _: KW_ONLY
    sequence_columns: tuple[str, ...] = ()
    sequence_descending: bool = False
    ignore_delete: bool = False
    engine: MergeEngine = MergeEngine.DEDUPLICATE
    columns: tuple[ColumnRule, ...] = ()
    groups: tuple[SequenceGroup, ...] = ()
    remove_on_delete: bool = False
    remove_on_groups: frozenset[str] = frozenset()
    lookup: bool = False

    @staticmethod
    def of(schema: TableSchema, options: TableOptions) -> MergeSpec:
        """Return the merge rules of a table."""
        engine = options.merge_engine
        groups = _groups(options) if engine is MergeEngine.PARTIAL_UPDATE else ()
        remove = {
            MergeEngine.PARTIAL_UPDATE: options.partial_update_remove_record_on_delete,
            MergeEngine.AGGREGATION: options.aggregation_remove_record_on_delete,
        }
        return MergeSpec(
            schema.trimmed_primary_keys,
            sequence_columns=options.sequence_field,
            sequence_descending=options.sequence_field_descending,
            ignore_delete=options.ignore_delete,
            engine=engine,
            columns=_rules(schema, options, groups) if engine in remove else (),
            groups=groups,
            remove_on_delete=remove.get(engine, False),
            remove_on_groups=frozenset(options.partial_update_remove_record_on_sequence_group if groups else ()),
            lookup=options.needs_lookup and engine in remove,
        )

    @property
    def keeps_rows(self) -> bool:
        """Whether each merged row is one of its input rows (`deduplicate` and `first-row`)."""
        return self.engine in (MergeEngine.DEDUPLICATE, MergeEngine.FIRST_ROW)

    @property
    def removing_sequences(self) -> tuple[str, ...]:
        """The sequence columns of groups in which a -D removes the row; a -D with NULL in all of them removes nothing."""
        removing = (group.sequence for group in self.groups if self.remove_on_groups & {*group.sequence})
        return tuple(dict.fromkeys(name for sequence in removing for name in sequence))

    @property
    def decisive_columns(self) -> tuple[str, ...]:
        """The columns that decide which row wins: key, sequence fields and the two system columns, each once."""
        names = (*self.key_columns, *self.sequence_columns, SEQUENCE_NUMBER, VALUE_KIND)
        return tuple(dict.fromkeys(names))

    @property
    def decisive_fields(self) -> tuple[str, ...]:
        """The `decisive_columns` without the system columns."""
        return tuple(dict.fromkeys((*self.key_columns, *self.sequence_columns)))

    def of_columns(self, names: Collection[str]) -> MergeSpec:
        """Return the rules that merge some columns as this spec does, without rules that these columns do not need."""
        kept = {*names, *self.sequence_columns, *(name for group in self.groups for name in group.sequence)}
        groups = (replace(one, governed=tuple(name for name in one.governed if name in kept)) for one in self.groups)
        return replace(self, columns=tuple(rule for rule in self.columns if rule.name in kept), groups=tuple(groups))

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The columns of the table that the merge needs."""
        return tuple(dict.fromkeys((*self.decisive_fields, *(rule.name for rule in self.columns))))


def _groups(options: TableOptions) -> tuple[SequenceGroup, ...]:
    return tuple(
        SequenceGroup(tuple(columns.split(",")), tuple(parse_names(settings["sequence-group"])))
        for columns, settings in options.field_options.items()
        if "sequence-group" in settings
    )


def _rules(schema: TableSchema, options: TableOptions, groups: tuple[SequenceGroup, ...]) -> tuple[ColumnRule, ...]:
    ordering = {name for group in groups for name in group.sequence}
    rules = []
    for field in schema.fields:
        if field.name in schema.primary_keys:
            continue
        rules.append(_rule(field.name, not field.type.nullable, field.name in ordering, options))
    return tuple(rules)


def _rule(name: str, not_null: bool, ordering: bool, options: TableOptions) -> ColumnRule:
    settings = options.field_options.get(name, {})
    function = settings.get("aggregate-function", options.default_aggregate_function)
    if options.merge_engine is MergeEngine.AGGREGATION:
        function = LAST_VALUE if name in options.sequence_field else function or LAST_NON_NULL_VALUE
    elif ordering:
        function = None
    return ColumnRule(
        name,
        function,
        ignore_retract=parse_boolean(settings.get("ignore-retract", "false")),
        not_null=not_null,
        delimiter=settings.get("list-agg-delimiter", ","),
        distinct=parse_boolean(settings.get("distinct", "false")),
        nested_key=tuple(parse_names(settings.get("nested-key", ""))),
        nested_sequence=tuple(parse_names(settings.get("nested-sequence-field", ""))),
        null_strategy=settings.get("nested-key-null-strategy", "merge").strip().lower(),
        count_limit=int(settings.get("count-limit", _NO_LIMIT)),
        time_member=settings.get("ts-field"),
    )
