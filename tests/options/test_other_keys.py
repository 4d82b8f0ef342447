"""Keys without a declaration: accepted, unbuilt or unknown."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options import OPTIONS
from lakelsm.options.other_keys import ACCEPTED_KEYS, UNBUILT_KEYS, UNBUILT_PREFIXES, check_new_keys, check_unbuilt_keys

NONE: frozenset[str] = frozenset()


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
        check_new_keys({key: "x"}, NONE)


def test_every_known_key_is_accepted_alternative_ones_included() -> None:
    fallbacks = [key for declared in OPTIONS.values() for key in declared.fallback_keys]
    more = ["fields.default-aggregate-function", "fields.a.distinct", "fields.r.m.aggregate-function"]
    known = dict.fromkeys([*OPTIONS, *fallbacks, *ACCEPTED_KEYS, *more], "x")
    check_new_keys(known, NONE)
    check_unbuilt_keys(known, NONE)


def test_keys_that_a_feature_refuses_with_its_own_words_are_known_and_left_to_it() -> None:
    with pytest.raises(InvalidInputError, match="unknown option"):
        check_new_keys({"zz.feature": "x"}, NONE)
    check_new_keys({"zz.feature": "x"}, frozenset(["zz.feature"]))
    check_unbuilt_keys({UNBUILT_KEYS[0]: "x"}, frozenset([UNBUILT_KEYS[0]]))


@pytest.mark.parametrize("key", [UNBUILT_KEYS[0], UNBUILT_KEYS[-1], *(f"{prefix}z" for prefix in UNBUILT_PREFIXES)])
def test_an_unbuilt_key_of_paimon_is_known_and_refused_by_name_and_value(key: str) -> None:
    check_new_keys({key: "1"}, NONE)
    with pytest.raises(UnsupportedFeatureError, match=f"option '{key}' = '1' is not supported yet; remove it"):
        check_unbuilt_keys({key: "1"}, NONE)


def test_column_options_and_keys_of_other_engines_are_not_called_unbuilt() -> None:
    check_unbuilt_keys({"fields.tag.distinct": "true", "my.owner": "x"}, NONE)
