"""Rules for values of options that are being set, so that an accepted value does not fail later.

Other engines accept more values. A table that has one can be opened; the operation that needs the value raises an error.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType

from lakelsm.arguments import LONGEST_NAME, checked_consumer, checked_tag
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options.option_values import parse_names
from lakelsm.options.partition_timestamps import DAY_FIELDS, parse_timestamp_formatter, pattern_pieces
from lakelsm.schema.key_rules import no_column
from lakelsm.schema.table_schema import TableSchema
from lakelsm.schema.write_codecs import CODECS, check_codec

#: Maximum characters of the prefix of commit users; a UUID follows.
_MAX_PREFIX = 900
_FORMATTER = "partition.timestamp-formatter"
_INTERVAL = "partition.time-interval"


def check_new_values(schema: TableSchema, changed: Mapping[str, str]) -> None:
    """Check options that are being set on a table with this schema.

    Raises InvalidInputError or UnsupportedFeatureError with key, value and remedy.
    """
    for key, text in changed.items():
        rule = _RULES.get(key)
        if rule is not None:
            rule(schema, key, text)


def _consumer(_schema: TableSchema, key: str, text: str) -> None:
    checked_consumer(f"option '{key}'", text)


def _tag(_schema: TableSchema, key: str, text: str) -> None:
    checked_tag(f"option '{key}'", text)


def _user_prefix(_schema: TableSchema, key: str, text: str) -> None:
    if len(text) > _MAX_PREFIX or any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise InvalidInputError(
            f"option '{key}': {text[:_MAX_PREFIX]!r} is not printable text of at most {_MAX_PREFIX} characters."
        )


def _directory_value(schema: TableSchema, key: str, text: str) -> None:
    room = LONGEST_NAME - max((len(f"{name}=".encode()) for name in schema.partition_keys), default=0)
    if not text.strip() or len(text.encode(errors="replace")) > room:
        raise InvalidInputError(
            f"option '{key}': {text!r} is blank, or not a directory name of 1 to {room} bytes."
        )


def _formatter(_schema: TableSchema, key: str, text: str) -> None:
    try:
        fields = parse_timestamp_formatter(text).groupindex.keys()
    except ValueError as reason:
        raise UnsupportedFeatureError(f"option '{key}' = '{text}': {reason}") from None
    if not fields >= DAY_FIELDS:
        raise InvalidInputError(
            f"option '{key}': {text!r} lacks a year, a month or a day, so that no partition would ever expire. Use, for "
            "example, 'yyyyMMdd'."
        )


def _pattern(schema: TableSchema, key: str, text: str) -> None:
    pieces, unknown = pattern_pieces(text, schema.partition_keys)
    if len(pieces) == 1 or (unknown is not None and "$" not in schema.options.get(_FORMATTER, "")):
        fault = "no partition column is referenced" if unknown is None else f"{unknown} is not a partition column"
        names = ", ".join(f"${name}" for name in schema.partition_keys)
        remedy = f"Use {names}, as in '$dt 00:00:00'." if names else "Remove the option."
        raise InvalidInputError(f"option '{key}' = '{text}': {fault}. {remedy}")


def _partitioned(schema: TableSchema, key: str, text: str) -> None:
    if not schema.partition_keys:
        raise InvalidInputError(f"option '{key}' = '{text}' needs a table with partitions. Remove the option.")


def _idle_time(schema: TableSchema, key: str, text: str) -> None:
    _partitioned(schema, key, text)
    if _INTERVAL not in schema.options:
        raise InvalidInputError(f"option '{key}' = '{text}' needs '{_INTERVAL}'. Set it, for example to '1 d'.")


def _columns(schema: TableSchema, key: str, text: str) -> None:
    for name in parse_names(text):
        if name not in schema.field_names:
            raise no_column(key, name, schema)


def _codec(_schema: TableSchema, key: str, text: str) -> None:
    check_codec(key, text)


_RULES: Mapping[str, Callable[[TableSchema, str, str], None]] = MappingProxyType(
    {
        **dict.fromkeys(CODECS, _codec),
        "changelog-producer.row-deduplicate-ignore-fields": _columns,
        "commit.user-prefix": _user_prefix,
        "consumer-id": _consumer,
        "partition.default-name": _directory_value,
        "partition.expiration-time": _partitioned,
        "partition.idle-time-to-done": _idle_time,
        _INTERVAL: _partitioned,
        _FORMATTER: _formatter,
        "partition.timestamp-pattern": _pattern,
        "tag.batch.customized-name": _tag,
    }
)
