"""Validation of a table's schema and options: at creation, on opening, and for the options of one call.

The order is invalid values, unknown keys, Paimon's rules, and last features that lakelsm does not support, so that a
wrong configuration is reported as wrong and not as unsupported.
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
    """Return the typed options of a table that is about to be created (or of its next schema).

    Raises InvalidInputError for an unknown key, an invalid value or a broken rule, and UnsupportedFeatureError for a
    feature of Paimon that lakelsm does not support.
    """
    options = TableOptions.parse(schema.options)
    check_new_keys(schema.options)
    check_rules(schema, options)
    check_new_key(schema, options)
    check_new_values(schema, schema.options)
    refuse_unbuilt(schema, options, creating=True)
    return options


def validate_existing_table(schema: TableSchema) -> TableOptions:
    """Return the typed options of an existing table, for reads. Unknown keys are ignored.

    Raises UnsupportedFeatureError for a feature without which reads would return wrong rows, and InvalidInputError for
    a value or combination that Paimon also refuses. `validate_writes` checks what only writes need.
    """
    options = TableOptions.parse(schema.options, for_reads=True)
    check_rules(schema, options, for_reads=True)
    refuse_unbuilt(schema, options, creating=False)
    return options


def validate_changes(schema: TableSchema, options: TableOptions) -> None:
    """Check the options of a table that was opened for reads, before a change.

    Raises InvalidInputError for an invalid value or combination that only writes and maintenance need.
    """
    options.check_usable()
    check_rules(schema, options)


def validate_writes(schema: TableSchema, options: TableOptions) -> None:
    """Check the options of a table that was opened for reads, before files or a snapshot are written.

    Raises like `validate_changes`, and UnsupportedFeatureError for a compression that lakelsm does not write and for a
    feature without which written files would be wrong.
    """
    validate_changes(schema, options)
    check_codecs(options)
    refuse_unbuilt_writes(schema, options)


def with_dynamic_options(
    schema: TableSchema, overrides: Mapping[str, str]
) -> tuple[TableSchema, TableOptions]:
    """Return the schema (with the same id) and the typed options of one call whose options override the table's.

    Raises InvalidInputError for an unknown key, an invalid value, a broken rule or an option that a single call cannot
    set, and UnsupportedFeatureError for a feature that lakelsm does not support.
    """
    for key, text in overrides.items():
        if not isinstance(text, str):
            raise InvalidInputError(f"option '{key}': expected a text, got {type(text).__name__}.")
        check_option_of_call(schema.options, key, text)
    merged = schema.with_options({**schema.options, **overrides})
    return merged, validate_changed_table(merged, overrides)


def validate_changed_table(schema: TableSchema, changed: Mapping[str, str]) -> TableOptions:
    """Return the typed options of an existing table after some of them (`changed`) were set.

    The changed options are checked as at creation, the others as on opening.
    """
    check_new_keys(changed)
    TableOptions.parse(changed)
    options = validate_existing_table(schema)
    check_rules(schema, options)
    check_new_values(schema, changed)
    refuse_unbuilt(schema.with_options(changed), options, creating=True)
    return options
