"""Commit users and batch ids: generated users, and those of the arguments."""

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


def test_a_generated_user_is_the_prefix_and_a_unique_uuid() -> None:
    uuid.UUID(made_up())
    start, _, unique = made_up("nightly_load").rpartition("_")
    assert start == "nightly_load"
    uuid.UUID(unique)
    assert made_up("nightly_load") != made_up("nightly_load")


@pytest.mark.parametrize("prefix", ["a\nb", "x" * 1000])
def test_an_invalid_prefix_is_refused_with_the_name_of_the_option(prefix: str) -> None:
    with pytest.raises(InvalidInputError, match=r"option 'commit\.user-prefix': "):
        made_up(prefix)


def test_the_longest_prefix_makes_a_valid_user() -> None:
    assert len(checked_commit_user(made_up("x" * 963))) == 1000


APPEND, COMPACT, OVERWRITE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE

BAD_USERS: list[Any] = ["", "  ", 5, True, b"job", None, "job\n", "a\0b", "a\x7f", "\ud800", "\udc00x", "x" * 1001]


@pytest.mark.parametrize("user", BAD_USERS, ids=lambda user: repr(user)[:12])
def test_an_invalid_commit_user_is_refused_before_anything_is_written(table: CommitTable, user: Any) -> None:
    with pytest.raises(InvalidInputError, match="commit_user"):
        table.committer().commit(APPEND, CommitMessage([add()]), user)
    assert table.snapshots.ids() == [] and table.metadata_names() == set()


@pytest.mark.parametrize("identifier", [True, False, -1, 1 << 63, 1 << 20_000, 1.0, "1", None], ids=range(8))
def test_an_invalid_batch_id_is_refused(table: CommitTable, identifier: Any) -> None:
    with pytest.raises(InvalidInputError, match="batch_id: "):
        table.committer().commit(APPEND, CommitMessage([add()]), "u", identifier)
    assert table.snapshots.ids() == [] and table.metadata_names() == set()


def test_a_numpy_integer_becomes_an_int() -> None:
    assert type(checked_batch_id(np.int64(7))) is int


@pytest.mark.parametrize("number", [0, 1, (1 << 63) - 2])
def test_all_numbers_except_the_largest_are_batch_ids(number: int) -> None:
    assert checked_batch_id(number) == number
    with pytest.raises(InvalidInputError, match="batch_id: "):
        checked_batch_id((1 << 63) - 1)


def test_a_call_commits_as_its_commit_user_or_as_a_new_user() -> None:
    options = TableOptions()
    assert commit_identity(options, "job", 7, lambda: "u") == ("job", 7)
    assert commit_identity(options, "job", None, lambda: "u") == ("job", BATCH_COMMIT_IDENTIFIER)
    assert commit_identity(options, None, None, lambda: "u") == ("u", BATCH_COMMIT_IDENTIFIER)
    with pytest.raises(InvalidInputError, match="batch_id: commit_user is missing"):
        commit_identity(options, None, 7, lambda: "u")
