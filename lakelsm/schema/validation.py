"""Judging a table's schema and options: at creation, on opening, and for the options of one call.

Order: values that cannot be read, unknown keys, Paimon's rules, and last what lakelsm has not built, so that
a wrong configuration is called wrong rather than unsupported.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakelsm.errors import InvalidInputError
from lakelsm.options import TableOptions
from lakelsm.options.option_change import check_option_of_call
from lakelsm.options.other_keys import check_new_keys
from lakelsm.schema.key_rules import check_new_key
from lakelsm.schema.new_values import check_new_values
from lakelsm.schema.option_rules import check_rules
from lakelsm.schema.table_schema import TableSchema
from lakelsm.schema.unbuilt_features import refuse_unbuilt, refuse_unbuilt_writes
from lakelsm.schema.write_codecs import check_codecs


def validate_table(schema: TableSchema) -> TableOptions:
    """The typed options of a table about to be created (or of its next schema).

    Raises InvalidInputError for an unknown key, a bad value or a broken rule; UnsupportedFeatureError for a
    feature of Paimon that lakelsm has not built.
    """
    options = TableOptions.parse(schema.options)
    check_new_keys(schema.options)
    check_rules(schema, options)
    check_new_key(schema, options)
    check_new_values(schema, schema.options)
    refuse_unbuilt(schema, options, creating=True)
    return options


def validate_existing_table(schema: TableSchema) -> TableOptions:
    """The typed options of a table that exists, to read it; keys that lakelsm does not know are ignored.

    Raises UnsupportedFeatureError for a feature without which its rows would be read wrongly, InvalidInputError for a
    value or combination that Paimon refuses too. What only writes need is judged by `validate_writes`.
    """
    options = TableOptions.parse(schema.options, for_reads=True)
    check_rules(schema, options, for_reads=True)
    refuse_unbuilt(schema, options, creating=False)
    return options


def validate_changes(schema: TableSchema, options: TableOptions) -> None:
    """Judge the options of a table that was opened for reads, before it is changed.

    Raises InvalidInputError for a value or combination that only writes and upkeep need and that cannot be used.
    """
    options.check_usable()
    check_rules(schema, options)


def validate_writes(schema: TableSchema, options: TableOptions) -> None:
    """Judge the options of a table that was opened for reads, before files or a snapshot are written.

    Raises as `validate_changes`, and UnsupportedFeatureError for a compression that lakelsm does not write or a feature
    without which what is written would be wrong.
    """
    validate_changes(schema, options)
    check_codecs(options)
    refuse_unbuilt_writes(schema, options)


def with_dynamic_options(
    schema: TableSchema, overrides: Mapping[str, str]
) -> tuple[TableSchema, TableOptions]:
    """The schema (same id) and typed options of one call whose options override the table's.

    Raises InvalidInputError for an unknown key, a bad value, a broken rule or an option that is the
    table's and no call's; UnsupportedFeatureError for what is not built.
    """
    for key, text in overrides.items():
        if not isinstance(text, str):
            raise InvalidInputError(f"option '{key}' must be a text, not a {type(text).__name__}")
        check_option_of_call(schema.options, key, text)
    merged = schema.with_options({**schema.options, **overrides})
    return merged, validate_changed_table(merged, overrides)


def validate_changed_table(schema: TableSchema, changed: Mapping[str, str]) -> TableOptions:
    """The typed options of an existing table some of whose options (`changed`) are new.

    The new ones are judged as at creation, the others as on opening.
    """
    check_new_keys(changed)
    TableOptions.parse(changed)
    options = validate_existing_table(schema)
    check_rules(schema, options)
    check_new_values(schema, changed)
    refuse_unbuilt(schema.with_options(changed), options, creating=True)
    return options
