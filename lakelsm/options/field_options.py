"""Options of single columns: `fields.<column>[,<column>...].<x>` (Paimon's `CoreOptions.FIELDS_PREFIX`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from lakelsm.errors import InvalidInputError
from lakelsm.options.option import BOOLEAN, INT, STATS_MODE, TEXT, Kind, Option, choice_kind

FIELDS_PREFIX = "fields."  # Persisted: do not change.
DEFAULT_AGGREGATE_KEY = "fields.default-aggregate-function"  # Persisted: do not change.

FieldOptions = Mapping[str, Mapping[str, str]]


class FieldOption(NamedTuple):
    """x of ``fields.<column>.<x>``. `per_call` is as in `Option`: most decide how rows are merged."""

    kind: Kind
    doc: str
    per_call: bool = False


FIELD_OPTIONS: Mapping[str, FieldOption] = MappingProxyType(
    {
        "aggregate-function": FieldOption(TEXT, "Aggregate function of the column."),
        "ignore-retract": FieldOption(BOOLEAN, "The column's aggregate ignores -U and -D."),
        "sequence-group": FieldOption(TEXT, "partial-update: columns that these sequence columns govern."),
        "nested-key": FieldOption(TEXT, "nested_update: key members of the nested rows."),
        "nested-key-null-strategy": FieldOption(
            choice_kind("merge", "ignore", "error"),
            "nested_update: what null keys do.",
        ),
        "nested-sequence-field": FieldOption(TEXT, "nested_update: sequence members of the nested rows."),
        "count-limit": FieldOption(INT, "nested_update: most nested rows."),
        "distinct": FieldOption(BOOLEAN, "collect and listagg: keep each value once."),
        "list-agg-delimiter": FieldOption(TEXT, "listagg: text between values."),
        "ts-field": FieldOption(TEXT, "merge_map_with_keytime: member that holds the time."),
        "stats-mode": FieldOption(STATS_MODE, "Statistics of the column, instead of metadata.stats-mode.", per_call=True),
        "map.storage-layout": FieldOption(choice_kind("default", "shared-shredding"), "Storage of a MAP column."),
    }
)


def split_field_key(key: str) -> tuple[str, str] | None:
    """(columns, x) of a `fields.` key, as Java splits it at the dots; None for any other key.

    'fields.a,b.sequence-group' gives ('a,b', 'sequence-group'); 'fields.r.m.aggregate-function' gives
    ('r', 'm.aggregate-function').
    """
    if not key.startswith(FIELDS_PREFIX) or key == DEFAULT_AGGREGATE_KEY:
        return None
    columns, _, rest = key[len(FIELDS_PREFIX) :].partition(".")
    return columns, rest


def parse_field_options(
    raw: Mapping[str, str], unusable: list[str] | None = None
) -> tuple[FieldOptions, str | None]:
    """({columns: {x: text}}, default aggregate function).

    Raises InvalidInputError for a text of the wrong kind; where ``unusable`` is given, it takes what is wrong with an
    option that only writes need, and the option is left out. An unknown x is kept out; `schema.validation` refuses it at
    creation.
    """
    found: dict[str, dict[str, str]] = {}
    for key, text in raw.items():
        split = split_field_key(key)
        if split is None or split[1] not in FIELD_OPTIONS:
            continue
        columns, name = split
        try:
            Option(key, FIELD_OPTIONS[name].kind, None, FIELD_OPTIONS[name].doc).parse(text)
        except InvalidInputError as error:
            if unusable is None or not FIELD_OPTIONS[name].per_call:
                raise
            unusable.append(str(error))
            continue
        found.setdefault(columns, {})[name] = text
    if "" in found:
        raise InvalidInputError(f"a '{FIELDS_PREFIX}' option names no column; write fields.<column>.<option>")
    return found, raw.get(DEFAULT_AGGREGATE_KEY)
