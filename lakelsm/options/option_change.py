"""The rules for changes of options of a table that has data (Paimon's `SchemaManager#checkAlterTableOption`).

Changes of 'deletion-vectors.enabled' also depend on the table's files: `plan/vector_switch.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakelsm.errors import InvalidInputError
from lakelsm.options.accepted_keys import ACCEPTED_KEYS
from lakelsm.options.field_options import DEFAULT_AGGREGATE_KEY, FIELD_OPTIONS, split_field_key
from lakelsm.options.option import Option
from lakelsm.options.option_values import parse_boolean
from lakelsm.options.table_options import OPTIONS

_IMMUTABLE_ELSEWHERE = frozenset(["primary-key", "partition"])
_NEVER_SWITCHED_OFF = ("ignore-delete", "ignore-update-before")


def check_option_change(options: Mapping[str, str], key: str, text: str | None) -> None:
    """Raise InvalidInputError unless a table that has data may set `key` to `text` (None: remove it).

    `options` are the table's current ones. Setting the current value again is always allowed.
    """
    declaration = OPTIONS.get(_main_key(key))
    present = None if declaration is None else declaration.text_in(options)
    old = present[1] if present else None
    if text is not None and (options.get(key) == text or _same(declaration, old, text)):
        return
    if key in _IMMUTABLE_ELSEWHERE or (declaration is not None and declaration.immutable):
        raise InvalidInputError(
            f"option '{key}' cannot change from {_shown(old)} to {_shown(text)} once the table has data. Create a new "
            "table."
        )
    if declaration is None:
        return
    if declaration.key == "bucket":
        _check_bucket_change(old, text)
    if declaration.key == "changelog-producer":
        _check_producer_change(options, old, text)
    switched_off = text is None or (declaration.key in _NEVER_SWITCHED_OFF and not parse_boolean(text))
    if declaration.key in _NEVER_SWITCHED_OFF and _flag(options, declaration.key) and switched_off:
        raise InvalidInputError(
            f"option '{key}' cannot change from 'true' to 'false' once the table has data. Create a new table."
        )


def check_option_of_call(options: Mapping[str, str], key: str, text: str) -> None:
    """Raise InvalidInputError unless a single write may set `key` to `text` for a table with `options`."""
    declaration = OPTIONS.get(_main_key(key))
    present = None if declaration is None else declaration.text_in(options)
    old = options.get(key) if present is None else present[1]
    if old == text or _same(declaration, old, text):
        return
    check_option_change(options, key, text)
    split = split_field_key(key)
    of_field = split is not None and split[1] in FIELD_OPTIONS and not FIELD_OPTIONS[split[1]].per_call
    of_table = declaration is not None and not declaration.per_call
    if of_field or of_table or key == DEFAULT_AGGREGATE_KEY or key in ACCEPTED_KEYS:
        raise InvalidInputError(
            f"option '{key}' = '{text}' cannot be set for one call (the table has {_shown(old)}): all writers and "
            "readers must agree on it, or it has no effect on a write. Leave it out, or change the table with "
            f"alter_table(..., SetOption('{key}', '{text}'))."
        )


def _check_bucket_change(old: str | None, text: str | None) -> None:
    if text is None:
        raise InvalidInputError("option 'bucket' cannot be removed once the table has data. Set a number.")
    if int(old or "-1") == -1:
        raise InvalidInputError(f"option 'bucket' cannot change from '-1' to '{text}'. Create a new table.")
    if int(OPTIONS["bucket"].parse(text)) == -1:  # type: ignore[call-overload]
        raise InvalidInputError(f"option 'bucket' cannot change from '{old}' to '-1'. Create a new table.")


def _check_producer_change(options: Mapping[str, str], old: str | None, text: str | None) -> None:
    """Refuse a change to or from 'lookup': with it a row above level 0 includes all lower rows (merge.levels)."""
    engine = options.get("merge-engine", "").strip().lower()
    if engine not in ("partial-update", "aggregation") or _flag(options, "force-lookup"):
        return
    if (old or "").strip().lower() != "lookup" != (text or "").strip().lower():
        return
    raise InvalidInputError(
        f"option 'changelog-producer' cannot change from {_shown(old)} to {_shown(text)} with 'merge-engine' = "
        f"'{engine}' once the table has data: rows would be merged twice or partly lost. Create a new table."
    )


def _same(declaration: Option | None, old: str | None, text: str) -> bool:
    if declaration is None:
        return False
    wanted = declaration.parse(text)
    try:
        return wanted == (declaration.default if old is None else declaration.parse(old))
    except InvalidInputError:  # The current text is invalid: any other text may replace it.
        return False


def _flag(options: Mapping[str, str], key: str) -> bool:
    found = OPTIONS[key].text_in(options)
    return bool(OPTIONS[key].default) if found is None else parse_boolean(found[1])


def _main_key(key: str) -> str:
    for declaration in OPTIONS.values():
        if key in declaration.fallback_keys:
            return declaration.key
    return key


def _shown(text: str | None) -> str:
    return "its default" if text is None else f"'{text}'"
