"""The commit user, the batch id and the streaming query of a call, checked before any work."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from lakelsm.arguments import checked_number, wrong_argument
from lakelsm.errors import InvalidInputError
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER
from lakelsm.options import TableOptions

_MAX_LENGTH = 1000


def new_commit_user(options: TableOptions, new_uuid: Callable[[], str]) -> str:
    """Return a unique commit user: a uuid, with ``commit.user-prefix`` and '_' before it if the table sets the option."""
    unique, prefix = new_uuid(), options.commit_user_prefix
    if prefix is None:
        return unique
    _check_name("option 'commit.user-prefix'", prefix, _MAX_LENGTH - len(unique) - 1)
    return f"{prefix}_{unique}"


def checked_commit_user(commit_user: object) -> str:
    """Return a valid commit user. Raises InvalidInputError for a text that not all engines could read back."""
    if not isinstance(commit_user, str):
        raise wrong_argument("commit_user", commit_user, "a text such as 'nightly-load'")
    if not commit_user.strip():
        raise InvalidInputError(f"commit_user: {commit_user!r} is blank. Use the name of the job, or leave it out.")
    _check_name("commit_user", commit_user, _MAX_LENGTH)
    return commit_user


def _check_name(what: str, name: str, max_length: int) -> None:
    # Control characters and halves of surrogate pairs.
    strange = next((char for char in name if unicodedata.category(char) in ("Cc", "Cs")), None)
    if strange is not None:
        raise InvalidInputError(f"{what}: {name!r} has the character {strange!r}. Use printable text.")
    if len(name) > max_length:
        raise InvalidInputError(f"{what}: {name[:20] + '...'!r} has {len(name)} characters. Use at most {max_length}.")


def commit_identity(
    options: TableOptions, commit_user: object, batch_id: object, new_uuid: Callable[[], str]
) -> tuple[str, int]:
    """Return the commit user and the identifier of a call's commits: those of the arguments, or a new user.

    Raises InvalidInputError for an invalid name or number, and for a batch id without a user.
    """
    if commit_user is None and batch_id is not None:
        raise InvalidInputError("batch_id: commit_user is missing. A batch is identified by both.")
    user = new_commit_user(options, new_uuid) if commit_user is None else checked_commit_user(commit_user)
    return user, BATCH_COMMIT_IDENTIFIER if batch_id is None else checked_batch_id(batch_id)


def commit_user_of_query(query_id: str) -> str:
    """Return the commit user of a streaming query whose caller names none.

    It depends on the query alone: an option that changed between two runs of the query would make it another user, and
    a repeated batch would be committed twice.
    """
    return f"stream-{query_id}"


def checked_query_id(query_id: str | None, identifier: int) -> str | None:
    """Return the valid id of a streaming query, or None. Raises InvalidInputError for a query without a batch id."""
    if query_id is None:
        return None
    if not query_id.strip():
        raise InvalidInputError(f"query_id: {query_id!r} is blank. Use the id of the streaming query.")
    _check_name("query_id", query_id, _MAX_LENGTH)
    if identifier == BATCH_COMMIT_IDENTIFIER:
        raise InvalidInputError("batch_id: it is missing, and query_id is set. A batch of a query has both.")
    return query_id


def checked_batch_id(batch_id: object) -> int:
    """Return a valid batch id. Raises InvalidInputError for other values; the largest number means 'no batch id'."""
    return checked_number("batch_id", batch_id, min_value=0, max_value=BATCH_COMMIT_IDENTIFIER - 1)
