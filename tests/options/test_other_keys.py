"""Keys without a declaration: accepted, not supported, or unknown."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options import OPTIONS
from lakelsm.options.accepted_keys import ACCEPTED_KEYS
from lakelsm.options.option import BOOLEAN, TEXT
from lakelsm.options.other_keys import (
    FEATURE_KEYS,
    UNBUILT_KEYS,
    UNBUILT_PREFIXES,
    UPKEEP_KEYS,
    WRITE_KEYS,
    check_new_keys,
    check_unbuilt_keys,
)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("bukcet", "option 'bukcet' = 'x' is unknown. Use 'bucket'"),
        ("zzzzzzzzzzzz", "option 'zzzzzzzzzzzz' = 'x' is unknown. docs/options.md lists all options"),
        ("fields.v.aggregate-functon", "'aggregate-functon' is not an option of columns. Use 'aggregate-function'"),
        ("fields.v.q", "'q' is not an option of columns. Use one of aggregate-function, ignore-retract"),
        ("fields.v", "option 'fields.v': '' is not an option of columns"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(key: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_new_keys({key: "x"})


def test_every_known_key_and_fallback_key_is_accepted() -> None:
    fallbacks = [key for declared in OPTIONS.values() for key in declared.fallback_keys]
    more = ["fields.default-aggregate-function", "fields.a.distinct", "fields.r.m.aggregate-function"]
    known = dict.fromkeys([*OPTIONS, *fallbacks, *FEATURE_KEYS, *WRITE_KEYS, *UPKEEP_KEYS, *more], "x")
    for key, kind in ACCEPTED_KEYS.items():
        known[key] = {BOOLEAN: "true", TEXT: "x"}.get(kind, kind.name.split(" / ")[0] if "/" in kind.name else "1")
    check_new_keys(known)
    check_unbuilt_keys(known)


@pytest.mark.parametrize("key", [UNBUILT_KEYS[0], UNBUILT_KEYS[-1], *(f"{prefix}z" for prefix in UNBUILT_PREFIXES)])
def test_a_key_of_paimon_that_is_not_supported_is_refused_by_name_and_value(key: str) -> None:
    check_new_keys({key: "1"})
    with pytest.raises(UnsupportedFeatureError, match=f"option '{key}' = '1' is not supported. Remove it"):
        check_unbuilt_keys({key: "1"})


def test_column_options_and_unknown_keys_are_not_reported_as_unsupported() -> None:
    check_unbuilt_keys({"fields.tag.distinct": "true", "my.owner": "x"})
