"""TableOptions: the typed options of a table, and OPTIONS: every declaration by key."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from lakelsm.errors import InvalidInputError
from lakelsm.options.engine_options import EngineOptions
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
    LayoutOptions, EngineOptions, MaintenanceOptions, PartitionOptions, TagOptions, LookupOptions, QueryServerOptions
):
    """All options of a table, parsed. An attribute is its key with '_' for '.' and '-'.

    `field_options` holds the `fields.<columns>.<x>` options as {columns: {x: text}}; several columns are
    joined by ',' as in the key. `file_indexes` are those of `file-index.<type>`. `explicit` holds the keys of declared
    options that the table sets. `unusable` has the fault of each option that only writes need and whose text cannot be
    read; its attribute has the default, and operations that change the table call `check_usable` first.
    """

    field_options: FieldOptions = field(default_factory=dict, hash=False)
    default_aggregate_function: str | None = None
    file_indexes: tuple[ColumnIndex, ...] = ()
    explicit: frozenset[str] = frozenset()
    unusable: tuple[str, ...] = ()

    @staticmethod
    def parse(raw: Mapping[str, str], *, for_reads: bool = False) -> TableOptions:
        """The typed options of a table. Keys without a declaration are for `schema.validation` to judge.

        Raises InvalidInputError that names key, value and what is allowed for a value that cannot be read; with
        ``for_reads`` not of options that only writes need (`unusable`).
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
            file_indexes = ()  # Reads leave out fewer files.
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
        """Whether a compaction of level 0 looks up the rows that lie below (Paimon's ``LookupStrategy``)."""
        return (
            self.changelog_producer is ChangelogProducer.LOOKUP
            or self.merge_engine is MergeEngine.FIRST_ROW
            or self.deletion_vectors_enabled
            or self.force_lookup
        )

    @property
    def effective_lookup_compact_max_interval(self) -> int:
        """What bounds the waiting of ``lookup-compact`` = ``gentle``, as Paimon has it."""
        trigger, own = self.num_sorted_run_compaction_trigger, self.lookup_compact_max_interval
        return max(trigger, 2 * trigger if own is None else own)

    @property
    def effective_changelog_num_retained_min(self) -> int:
        """The changelog's own bound, else the snapshots'."""
        own = self.changelog_num_retained_min
        return self.snapshot_num_retained_min if own is None else own

    @property
    def effective_changelog_num_retained_max(self) -> int:
        """The changelog's own bound, else the snapshots'."""
        own = self.changelog_num_retained_max
        return self.snapshot_num_retained_max if own is None else own

    def check_usable(self) -> None:
        """Raises InvalidInputError for the first option that only writes need and whose text cannot be read."""
        if self.unusable:
            raise InvalidInputError(f"{self.unusable[0]}; change the option or remove it")

    def is_set(self, key: str) -> bool:
        """Whether the table sets the declared option of this key (or one of its fallback keys)."""
        if key not in OPTIONS:
            raise InvalidInputError(f"'{key}' is not a declared option")
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
