"""Keys without a declaration: accepted, unbuilt or unknown."""

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
        ("bukcet", "unknown option 'bukcet' = 'x': did you mean 'bucket'?"),
        ("zzzzzzzzzzzz", "unknown option 'zzzzzzzzzzzz' = 'x': see docs/options.md"),
        ("fields.v.aggregate-functon", "unknown column option 'aggregate-functon'.*did you mean 'aggregate-function'?"),
        ("fields.v.q", "unknown column option 'q' in 'fields.v.q': known are aggregate-function, ignore-retract"),
        ("fields.v", "unknown column option '' in 'fields.v'"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(key: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_new_keys({key: "x"})


def test_every_known_key_is_accepted_alternative_ones_included() -> None:
    fallbacks = [key for declared in OPTIONS.values() for key in declared.fallback_keys]
    more = ["fields.default-aggregate-function", "fields.a.distinct", "fields.r.m.aggregate-function"]
    known = dict.fromkeys([*OPTIONS, *fallbacks, *FEATURE_KEYS, *WRITE_KEYS, *UPKEEP_KEYS, *more], "x")
    for key, kind in ACCEPTED_KEYS.items():
        known[key] = {BOOLEAN: "true", TEXT: "x"}.get(kind, kind.name.split(" / ")[0] if "/" in kind.name else "1")
    check_new_keys(known)
    check_unbuilt_keys(known)


@pytest.mark.parametrize("key", [UNBUILT_KEYS[0], UNBUILT_KEYS[-1], *(f"{prefix}z" for prefix in UNBUILT_PREFIXES)])
def test_an_unbuilt_key_of_paimon_is_known_and_refused_by_name_and_value(key: str) -> None:
    check_new_keys({key: "1"})
    with pytest.raises(UnsupportedFeatureError, match=f"option '{key}' = '1' is not supported yet; remove it"):
        check_unbuilt_keys({key: "1"})


def test_column_options_and_keys_of_other_engines_are_not_called_unbuilt() -> None:
    check_unbuilt_keys({"fields.tag.distinct": "true", "my.owner": "x"})
