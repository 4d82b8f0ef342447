"""Names of columns: which a new one may have, and which of them Spark takes for one."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from lakelsm.errors import InvalidInputError

#: Bytes of UTF-8: names of partition columns become names of directories.
_MAX_BYTES = 255


def folded(name: str) -> str:
    """The name without its case, as Java's ``equalsIgnoreCase`` compares: Spark takes names for one that fold alike."""
    return name.lower() if name.isascii() else "".join(map(_folded, name))


def match(name: str, known: Iterable[str]) -> str | None:
    """The name among ``known`` that Spark takes ``name`` for: that very one, else the only one that folds alike."""
    names = list(known)
    if name in names:
        return name
    found = [other for other in names if folded(other) == folded(name)]
    return found[0] if len(found) == 1 else None


def alike(names: Iterable[str]) -> tuple[str, str] | None:
    """The first two of the names that differ by case only; None if Spark distinguishes all of them."""
    seen: dict[str, str] = {}
    for name in names:
        earlier = seen.setdefault(folded(name), name)
        if earlier != name:
            return earlier, name
    return None


def hint(name: str, known: Iterable[str]) -> str:
    """``: write 'x'`` where the name means x in another case, for the end of a message; else nothing."""
    found = match(name, known)
    return "" if found is None or found == name else f": write '{found}'"


def check_new_name(name: object, what: str = "column") -> None:
    """Raise InvalidInputError unless a new column (or ``what`` it is) may be called so."""
    if not isinstance(name, str):
        raise InvalidInputError(f"the name of a {what} must be a text, not {name!r}")
    wrong = next((character for character in name if unicodedata.category(character) in ("Cc", "Cs")), None)
    if wrong is not None:
        kind = "control character" if unicodedata.category(wrong) == "Cc" else "half of a surrogate pair"
        raise InvalidInputError(f"{what} name {name!r} has the {kind} U+{ord(wrong):04X}; choose a name without it")
    if not name.strip():
        raise InvalidInputError(f"a {what} has the blank name {name!r}; name the column")
    size = len(name.encode())
    if size > _MAX_BYTES:
        raise InvalidInputError(
            f"{what} name '{name[:40]}...' has {size} bytes in UTF-8, and at most {_MAX_BYTES} are allowed; "
            "choose a shorter one"
        )


def _folded(character: str) -> str:
    upper = character.upper()
    upper = upper if len(upper) == 1 else character
    lower = upper.lower()
    return lower if len(lower) == 1 else upper
