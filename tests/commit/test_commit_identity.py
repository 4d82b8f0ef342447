"""Who commits: users that are made up, and those that are given."""

from __future__ import annotations

import uuid

import pytest

from lakelsm.commit.commit_identity import checked_commit_user, new_commit_user
from lakelsm.errors import InvalidInputError
from lakelsm.options import TableOptions


def made_up(prefix: str | None = None) -> str:
    return new_commit_user(TableOptions.parse({} if prefix is None else {"commit.user-prefix": prefix}))


def test_a_made_up_user_is_a_uuid_after_the_prefix_and_never_the_same_twice() -> None:
    uuid.UUID(made_up())
    start, _, unique = made_up("nightly_load").rpartition("_")
    assert start == "nightly_load"
    uuid.UUID(unique)
    assert made_up("nightly_load") != made_up("nightly_load")


@pytest.mark.parametrize("prefix", ["a\nb", "x" * 1000])
def test_a_prefix_that_no_user_can_have_names_the_option(prefix: str) -> None:
    with pytest.raises(InvalidInputError, match=r"option 'commit\.user-prefix' ="):
        made_up(prefix)


def test_the_longest_prefix_makes_a_user_that_could_be_given() -> None:
    assert len(checked_commit_user(made_up("x" * 963))) == 1000
