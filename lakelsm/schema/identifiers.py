"""Column names: the rules for new ones, and the comparison of names without case, as in Spark."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from lakelsm.errors import InvalidInputError

#: The maximum length of a name in UTF-8, because names of partition columns become names of directories.
_MAX_BYTES = 255


def folded(name: str) -> str:
    """Return a name without case, as Java's ``equalsIgnoreCase`` compares. Names that fold alike are equal in Spark."""
    return name.lower() if name.isascii() else "".join(map(_folded, name))


def match(name: str, known: Iterable[str]) -> str | None:
    """Return the name in ``known`` that ``name`` means in Spark: the same one, else the only one that folds alike."""
    names = list(known)
    if name in names:
        return name
    found = [other for other in names if folded(other) == folded(name)]
    return found[0] if len(found) == 1 else None


def alike(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two names that differ only in case; None if Spark distinguishes all of them."""
    seen: dict[str, str] = {}
    for name in names:
        earlier = seen.setdefault(folded(name), name)
        if earlier != name:
            return earlier, name
    return None


def unknown_column(name: str, known: Sequence[str]) -> str:
    """Return the text of an error for a name that is not one of the columns ``known``."""
    found = match(name, known)
    remedy = f"Columns: {', '.join(known)}." if found is None else f"Write '{found}'."
    return f"column '{name}' does not exist. {remedy}"


def check_new_name(name: object, what: str = "column") -> None:
    """Raise InvalidInputError unless a new column (or ``what``) may have this name."""
    if not isinstance(name, str):
        raise InvalidInputError(f"the name of a {what}: expected a text, got {name!r}.")
    wrong = next((character for character in name if unicodedata.category(character) in ("Cc", "Cs")), None)
    if wrong is not None:
        kind = "control character" if unicodedata.category(wrong) == "Cc" else "half of a surrogate pair"
        raise InvalidInputError(f"{what} name {name!r} has the {kind} U+{ord(wrong):04X}. Choose a name without it.")
    if not name.strip():
        raise InvalidInputError(f"{what} name {name!r} is blank. Choose another name.")
    size = len(name.encode())
    if size > _MAX_BYTES:
        raise InvalidInputError(
            f"{what} name '{name[:40]}…' has {size} bytes in UTF-8, more than {_MAX_BYTES}. Choose a shorter name."
        )


def _folded(character: str) -> str:
    upper = character.upper()
    upper = upper if len(upper) == 1 else character
    lower = upper.lower()
    return lower if len(lower) == 1 else upper
