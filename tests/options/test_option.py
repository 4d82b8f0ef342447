"""The declaration of one option: kinds, bounds, fallback keys, and errors with key, value and what is allowed."""

from __future__ import annotations

import dataclasses
from enum import Enum

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.options import OPTIONS
from lakelsm.options.option import BOOLEAN, DOUBLE, INT, LONG, TEXT, Option, choice_kind, enum_kind, option


class Fruit(Enum):
    APPLE = "apple"
    PEAR = "pear"


def test_an_enum_is_parsed_in_any_case_and_an_error_lists_its_values() -> None:
    kind = enum_kind(Fruit)
    assert kind.name == "apple / pear"
    assert kind.parse(" Apple ") is Fruit.APPLE
    with pytest.raises(ValueError, match="one of apple, pear"):
        kind.parse("plum")


def test_a_choice_is_parsed_in_any_case_to_lower_case() -> None:
    kind = choice_kind("merge", "ignore")
    assert kind.parse(" MERGE") == "merge"
    with pytest.raises(ValueError, match="one of merge, ignore"):
        kind.parse("")


@pytest.mark.parametrize("text", ["1", "10"])
def test_bounds_are_inclusive(text: str) -> None:
    assert Option("n", INT, 5, "", low=1, high=10).parse(text) == int(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("0", "less than 1"), ("11", "more than 10"), ("ten", "not a whole number"), ("", "not a whole number")],
)
def test_an_invalid_value_is_refused_with_key_value_and_what_is_allowed(text: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"option 'n': '{text}' is {reason}"):
        Option("n", INT, 5, "", low=1, high=10).parse(text)


def test_the_key_that_was_used_is_named() -> None:
    with pytest.raises(InvalidInputError, match="option 'older': 'x' is not a whole number"):
        Option("n", LONG, 5, "", fallback_keys=("older",)).parse("x", "older")


def test_bounds_do_not_apply_to_booleans_and_texts() -> None:
    assert Option("b", BOOLEAN, False, "", low=5).parse("true") is True
    assert Option("t", TEXT, None, "", low=5).parse("a") == "a"
    with pytest.raises(InvalidInputError, match="is less than 0"):
        Option("d", DOUBLE, 0.0, "", low=0).parse("-0.5")


def test_fallback_keys_are_read_after_the_own_key_in_their_order() -> None:
    declared = Option("n", INT, 5, "", fallback_keys=("old", "older"))
    assert declared.text_in({"older": "1", "old": "2", "n": "3"}) == ("n", "3")
    assert declared.text_in({"older": "1", "old": "2"}) == ("old", "2")
    assert declared.text_in({"other": "1"}) is None


def test_a_field_has_its_declaration_and_an_immutable_option_is_never_per_call() -> None:
    @dataclasses.dataclass
    class Some:
        n: int = option("n", INT, 5, "A number.", immutable=True, per_call=True)
        m: int = option("m", INT, 6, "Another.")

    assert (Some().n, Some().m) == (5, 6)
    n, m = (attribute.metadata["option"] for attribute in dataclasses.fields(Some))
    assert (n.key, n.immutable, n.per_call, n.doc) == ("n", True, False, "A number.")
    assert (m.immutable, m.per_call) == (False, True)


def test_a_long_value_is_shortened_in_the_error() -> None:
    """The error of a wrong value has 200 characters of it, and never Python's own limit of digits."""
    for key in ("bucket", "merge-engine", "target-file-size", "deletion-vectors.enabled"):
        with pytest.raises(InvalidInputError) as raised:
            OPTIONS[key].parse("9" * 100_000)
        assert "9" * 200 + "...'" in str(raised.value)
        assert len(str(raised.value)) < 600
        assert "4300" not in str(raised.value)
