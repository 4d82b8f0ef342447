"""The declaration of one option: kinds, ranges, alternative keys, and errors that name key, value and what is allowed."""

from __future__ import annotations

import dataclasses
from enum import Enum

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.options.option import BOOLEAN, DOUBLE, INT, LONG, TEXT, Option, choice_kind, enum_kind, option


class Fruit(Enum):
    APPLE = "apple"
    PEAR = "pear"


def test_an_enum_is_read_in_any_case_with_blanks_and_names_its_values_otherwise() -> None:
    kind = enum_kind(Fruit)
    assert kind.name == "apple / pear"
    assert kind.parse(" Apple ") is Fruit.APPLE
    with pytest.raises(ValueError, match="one of apple, pear"):
        kind.parse("plum")


def test_a_choice_is_read_in_any_case_to_lower_case() -> None:
    kind = choice_kind("merge", "ignore")
    assert kind.parse(" MERGE") == "merge"
    with pytest.raises(ValueError, match="one of merge, ignore"):
        kind.parse("")


@pytest.mark.parametrize("text", ["1", "10"])
def test_the_ends_of_a_range_are_in_it(text: str) -> None:
    assert Option("n", INT, 5, "", low=1, high=10).parse(text) == int(text)


@pytest.mark.parametrize(
    ("text", "reason"), [("0", "at least 1"), ("11", "at most 10"), ("ten", "whole number|number"), ("", ".")]
)
def test_a_value_out_of_range_or_kind_is_refused_naming_key_value_and_what_is_allowed(text: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"option 'n' cannot be '{text}': .*({reason})"):
        Option("n", INT, 5, "", low=1, high=10).parse(text)


def test_the_key_that_was_used_is_named() -> None:
    with pytest.raises(InvalidInputError, match="option 'older' cannot be 'x'"):
        Option("n", LONG, 5, "", fallback_keys=("older",)).parse("x", "older")


def test_a_bound_is_not_for_truths_and_texts() -> None:
    assert Option("b", BOOLEAN, False, "", low=5).parse("true") is True
    assert Option("t", TEXT, None, "", low=5).parse("a") == "a"
    with pytest.raises(InvalidInputError, match="at least 0"):
        Option("d", DOUBLE, 0.0, "", low=0).parse("-0.5")


def test_the_own_key_comes_before_the_alternative_ones_and_these_in_their_order() -> None:
    declared = Option("n", INT, 5, "", fallback_keys=("old", "older"))
    assert declared.text_in({"older": "1", "old": "2", "n": "3"}) == ("n", "3")
    assert declared.text_in({"older": "1", "old": "2"}) == ("old", "2")
    assert declared.text_in({"other": "1"}) is None


def test_a_field_carries_its_declaration_and_what_is_fixed_is_never_for_one_call() -> None:
    @dataclasses.dataclass
    class Some:
        n: int = option("n", INT, 5, "A number.", immutable=True, per_call=True)
        m: int = option("m", INT, 6, "Another.")

    assert (Some().n, Some().m) == (5, 6)
    n, m = (attribute.metadata["option"] for attribute in dataclasses.fields(Some))
    assert (n.key, n.immutable, n.per_call, n.doc) == ("n", True, False, "A number.")
    assert (m.immutable, m.per_call) == (False, True)
