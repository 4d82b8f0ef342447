"""TableOptions, the typed options of a table, and OPTIONS, all declarations by key."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from lakelsm.errors import InvalidInputError
from lakelsm.options.engine_options import EngineOptions
from lakelsm.options.feed_options import FeedOptions
from lakelsm.options.field_options import FieldOptions, parse_field_options
from lakelsm.options.file_index_options import ColumnIndex, parse_file_indexes
from lakelsm.options.layout_options import LayoutOptions
from lakelsm.options.lookup_options import LookupOptions, QueryServerOptions
from lakelsm.options.maintenance_options import MaintenanceOptions
from lakelsm.options.option import Option
from lakelsm.options.option_enums import ChangelogProducer, MergeEngine, SortOrder
from lakelsm.options.partition_options import PartitionOptions
from lakelsm.options.tag_options import TagOptions


@dataclass(frozen=True, kw_only=True)
class TableOptions(
    LayoutOptions,
    EngineOptions,
    FeedOptions,
    MaintenanceOptions,
    PartitionOptions,
    TagOptions,
    LookupOptions,
    QueryServerOptions,
):
    """All options of a table, parsed. The name of an attribute is its key with '_' for '.' and '-'.

    `field_options`: the `fields.<columns>.<name>` options as {columns: {name: text}}, with several columns joined by
    ',' as in the key. `file_indexes`: the indexes of the `file-index.<type>` options. `explicit`: the keys of declared
    options that the table sets. `unusable`: the errors of options that only writes need and whose texts are invalid;
    their attributes have the defaults, and operations that change the table call `check_usable` first.
    """

    field_options: FieldOptions = field(default_factory=dict, hash=False)
    default_aggregate_function: str | None = None
    file_indexes: tuple[ColumnIndex, ...] = ()
    explicit: frozenset[str] = frozenset()
    unusable: tuple[str, ...] = ()

    @staticmethod
    def parse(raw: Mapping[str, str], *, for_reads: bool = False) -> TableOptions:
        """Parse the options of a table, except keys without a declaration, which `schema.validation` checks.

        Raises InvalidInputError with the key, the value and what is allowed. With ``for_reads``, invalid values of
        options that only writes need become `unusable` instead.
        """
        values: dict[str, Any] = {}
        explicit: set[str] = set()
        unusable: list[str] = []
        for attribute, declaration in ATTRIBUTES.items():
            found = declaration.text_in(raw)
            if found is None:
                continue
            explicit.add(declaration.key)
            try:
                values[attribute] = declaration.parse(found[1], found[0])
            except InvalidInputError as error:
                if not (for_reads and declaration.for_writes):
                    raise
                unusable.append(str(error))
        field_options, default_aggregate = parse_field_options(raw, unusable if for_reads else None)
        try:
            file_indexes = parse_file_indexes(raw)
        except InvalidInputError as error:
            if not for_reads:
                raise
            file_indexes = ()  # Without indexes, reads only skip fewer files.
            unusable.append(str(error))
        parsed = TableOptions(
            **values,
            field_options=field_options,
            default_aggregate_function=default_aggregate,
            file_indexes=file_indexes,
            explicit=frozenset(explicit),
            unusable=tuple(unusable),
        )
        return parsed._with_derived_defaults()

    def _with_derived_defaults(self) -> TableOptions:
        trigger = self.num_sorted_run_compaction_trigger
        stop = self.num_sorted_run_stop_trigger if self.is_set("num-sorted-run.stop-trigger") else trigger + 3
        levels = self.num_levels if self.is_set("num-levels") else trigger + 1
        compression = "none" if self.file_compression == "uncompressed" else self.file_compression
        return dataclasses.replace(
            self,
            num_sorted_run_stop_trigger=max(stop, trigger),
            num_levels=max(levels, 2),
            file_compression=compression,
        )

    @property
    def sequence_field_descending(self) -> bool:
        """Whether the smallest sequence value wins."""
        return self.sequence_field_sort_order is SortOrder.DESCENDING

    @property
    def needs_lookup(self) -> bool:
        """Whether a compaction of level 0 looks up the rows of lower levels (Paimon's ``LookupStrategy``)."""
        return (
            self.changelog_producer is ChangelogProducer.LOOKUP
            or self.merge_engine is MergeEngine.FIRST_ROW
            or self.deletion_vectors_enabled
            or self.force_lookup
        )

    @property
    def effective_lookup_compact_max_interval(self) -> int:
        """The number of level-0 files at which ``lookup-compact`` = ``gentle`` compacts, by Paimon's rule."""
        trigger, own = self.num_sorted_run_compaction_trigger, self.lookup_compact_max_interval
        return max(trigger, 2 * trigger if own is None else own)

    @property
    def effective_changelog_num_retained_min(self) -> int:
        """The bound of changelogs, by default that of snapshots."""
        own = self.changelog_num_retained_min
        return self.snapshot_num_retained_min if own is None else own

    @property
    def effective_changelog_num_retained_max(self) -> int:
        """The bound of changelogs, by default that of snapshots."""
        own = self.changelog_num_retained_max
        return self.snapshot_num_retained_max if own is None else own

    def check_usable(self) -> None:
        """Raise InvalidInputError for the first invalid option that only writes need."""
        if self.unusable:
            raise InvalidInputError(f"{self.unusable[0]} Change or remove the option.")

    def is_set(self, key: str) -> bool:
        """Return whether the table sets the declared option of this key, also by a fallback key."""
        if key not in OPTIONS:
            raise InvalidInputError(f"option '{key}' is not declared.")
        return key in self.explicit


ATTRIBUTES: Mapping[str, Option] = MappingProxyType(
    {
        attribute.name: attribute.metadata["option"]
        for attribute in dataclasses.fields(TableOptions)
        if "option" in attribute.metadata
    }
)
OPTIONS: Mapping[str, Option] = MappingProxyType(
    {declaration.key: declaration for declaration in sorted(ATTRIBUTES.values(), key=lambda o: o.key)}
)
