"""Options of single columns: `fields.<column>[,<column>...].<name>` (Paimon's `CoreOptions.FIELDS_PREFIX`)."""

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
    """The declaration of ``fields.<column>.<name>``; `per_call` as in `Option`: most decide how rows are merged."""

    kind: Kind
    doc: str
    per_call: bool = False


FIELD_OPTIONS: Mapping[str, FieldOption] = MappingProxyType(
    {
        "aggregate-function": FieldOption(TEXT, "Aggregate function of the column."),
        "ignore-retract": FieldOption(BOOLEAN, "The aggregate function of the column ignores -U and -D."),
        "sequence-group": FieldOption(
            TEXT, "partial-update: columns whose newest values these sequence columns decide."
        ),
        "nested-key": FieldOption(TEXT, "nested_update: members that are the key of the nested rows."),
        "nested-key-null-strategy": FieldOption(
            choice_kind("merge", "ignore", "error"),
            "nested_update: treatment of nested rows with a NULL key.",
        ),
        "nested-sequence-field": FieldOption(
            TEXT, "nested_update: members that decide which nested row of a key is the newest."
        ),
        "count-limit": FieldOption(INT, "nested_update: maximum number of nested rows."),
        "distinct": FieldOption(BOOLEAN, "collect and listagg: keep each value once."),
        "list-agg-delimiter": FieldOption(TEXT, "listagg: text between values."),
        "ts-field": FieldOption(TEXT, "merge_map_with_keytime: member that holds the time."),
        "stats-mode": FieldOption(
            STATS_MODE, "Statistics of the column, instead of metadata.stats-mode.", per_call=True
        ),
        "map.storage-layout": FieldOption(
            choice_kind("default", "shared-shredding"), "Storage layout of a MAP column."
        ),
    }
)


def split_field_key(key: str) -> tuple[str, str] | None:
    """Split a `fields.` key into columns and option name, at the same dot as Java; None for any other key.

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
    """Parse the options of columns. Returns {columns: {option name: text}} and the default aggregate function.

    Raises InvalidInputError for an invalid text. If ``unusable`` is given, errors of options that only writes need are
    appended to it instead. Unknown option names are left out; `schema.validation` refuses them at creation.
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
        raise InvalidInputError(f"option '{FIELDS_PREFIX}…' names no column. Write fields.<column>.<option>.")
    return found, raw.get(DEFAULT_AGGREGATE_KEY)
