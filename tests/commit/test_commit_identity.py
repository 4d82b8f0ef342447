"""Who commits: users that are made up, and those that are given."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pytest

from lakelsm.commit.commit_identity import checked_batch_id, checked_commit_user, commit_identity, new_commit_user
from lakelsm.commit.commit_message import CommitMessage
from lakelsm.environment import SYSTEM
from lakelsm.errors import InvalidInputError
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from lakelsm.options import TableOptions
from tests.commit.commit_table import CommitTable, add


def made_up(prefix: str | None = None) -> str:
    return new_commit_user(TableOptions.parse({} if prefix is None else {"commit.user-prefix": prefix}), SYSTEM.new_uuid)


def test_a_made_up_user_is_a_uuid_after_the_prefix_and_never_the_same_twice() -> None:
    uuid.UUID(made_up())
    start, _, unique = made_up("nightly_load").rpartition("_")
    assert start == "nightly_load"
    uuid.UUID(unique)
    assert made_up("nightly_load") != made_up("nightly_load")


@pytest.mark.parametrize("prefix", ["a\nb", "x" * 1000])
def test_a_prefix_that_no_user_can_have_names_the_option(prefix: str) -> None:
    with pytest.raises(InvalidInputError, match=r"option 'commit\.user-prefix': "):
        made_up(prefix)


def test_the_longest_prefix_makes_a_user_that_could_be_given() -> None:
    assert len(checked_commit_user(made_up("x" * 963))) == 1000


APPEND, COMPACT, OVERWRITE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE

BAD_USERS: list[Any] = ["", "  ", 5, True, b"job", None, "job\n", "a\0b", "a\x7f", "\ud800", "\udc00x", "x" * 1001]


@pytest.mark.parametrize("user", BAD_USERS, ids=lambda user: repr(user)[:12])
def test_a_commit_user_that_is_no_name_is_refused_before_anything_is_written(table: CommitTable, user: Any) -> None:
    with pytest.raises(InvalidInputError, match="commit_user"):
        table.committer().commit(APPEND, CommitMessage([add()]), user)
    assert table.snapshots.ids() == [] and table.metadata_names() == set()


@pytest.mark.parametrize("identifier", [True, False, -1, 1 << 63, 1 << 20_000, 1.0, "1", None], ids=range(8))
def test_an_identifier_that_is_no_number_of_a_batch_is_refused(table: CommitTable, identifier: Any) -> None:
    with pytest.raises(InvalidInputError, match="batch_id: "):
        table.committer().commit(APPEND, CommitMessage([add()]), "u", identifier)
    assert table.snapshots.ids() == [] and table.metadata_names() == set()


def test_a_number_of_numpys_is_made_pythons() -> None:
    assert type(checked_batch_id(np.int64(7))) is int


@pytest.mark.parametrize("number", [0, 1, (1 << 63) - 2])
def test_every_number_but_the_greatest_is_one_of_a_batch(number: int) -> None:
    assert checked_batch_id(number) == number
    with pytest.raises(InvalidInputError, match="batch_id: "):
        checked_batch_id((1 << 63) - 1)


def test_a_call_commits_as_it_says_or_as_a_user_of_its_own() -> None:
    options = TableOptions()
    assert commit_identity(options, "job", 7, lambda: "u") == ("job", 7)
    assert commit_identity(options, "job", None, lambda: "u") == ("job", BATCH_COMMIT_IDENTIFIER)
    assert commit_identity(options, None, None, lambda: "u") == ("u", BATCH_COMMIT_IDENTIFIER)
    with pytest.raises(InvalidInputError, match="batch_id: commit_user is missing"):
        commit_identity(options, None, 7, lambda: "u")
