"""Options of file indexes, as Paimon's `FileIndexOptions`.

The keys are `file-index.<type>.columns` and `file-index.<type>.<column>.<name>`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType

from lakelsm.errors import InvalidInputError
from lakelsm.options.option import INT, NAMES, SIZE, Kind, Option
from lakelsm.options.option_values import parse_double

FILE_INDEX_PREFIX = "file-index."  # Persisted: do not change.
BLOOM_FILTER = "bloom-filter"  # Persisted: do not change.
BITMAP = "bitmap"  # Persisted: do not change.
COLUMNS = "columns"  # Persisted: do not change.

#: Upper bound of the bits of a bloom filter: Java counts them in 32 bits.
_MAX_BITS = 2**31 - 8


def _parse_rate(text: str) -> float:
    rate = parse_double(text)
    if not 0 < rate < 1:
        raise ValueError(f"{text!r} is not between 0 and 1")
    return rate


#: The options of an indexed column, ``file-index.<type>.<column>.<name>``, by type and name.
INDEX_OPTIONS: Mapping[str, Mapping[str, Option]] = MappingProxyType(
    {
        BLOOM_FILTER: {
            "items": Option(
                "items",
                INT,
                1_000_000,
                "Number of distinct values of a file that the filter is sized for.",
                low=1,
            ),
            "fpp": Option(
                "fpp", Kind("double", _parse_rate), 0.1, "False-positive rate with that number of values."
            ),
        },
        BITMAP: {
            "version": Option(
                "version", INT, 2, "Layout of the index; Paimon before 1.2 reads only 1.", low=1, high=2
            ),
            "index-block-size": Option(
                "index-block-size", SIZE, 16 << 10, "Size of a block of the dictionary (layout 2).", low=1
            ),
        },
    }
)
INDEX_COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        BLOOM_FILTER: "Columns with a bloom filter in each data file: reads skip files that lack a wanted value.",
        BITMAP: "Columns with a bitmap of rows per value in each data file: reads skip files without a wanted row.",
    }
)


@dataclass(frozen=True)
class ColumnIndex:
    """An index of one column in each data file. The settings of other kinds are 0."""

    kind: str
    column: str
    _: KW_ONLY
    items: int = 0
    fpp: float = 0.0
    version: int = 0
    block_bytes: int = 0

    @property
    def is_nested(self) -> bool:
        """Whether the index is on one key of a map: ``column[key]``."""
        return "[" in self.column and self.column.endswith("]")


def filter_bits(items: int, fpp: float) -> int:
    """Return the bits of a bloom filter for a number of values and a false-positive rate.

    Raises InvalidInputError if the filter would be too large.
    """
    wanted = -items * math.log(fpp) / (math.log(2) * math.log(2))
    if wanted >= _MAX_BITS:
        raise InvalidInputError(
            f"a bloom filter for {items} items with a false-positive rate of {fpp:g} needs more than 256 MB. Decrease "
            "'items' or increase 'fpp'."
        )
    return int(wanted) + 8 - int(wanted) % 8


def columns_key(kind: str) -> str:
    """Return the key of the option that lists the columns with an index of a type."""
    return f"{FILE_INDEX_PREFIX}{kind}.{COLUMNS}"


def split_index_key(key: str) -> tuple[str, str, str] | None:
    """Split a key of a type that lakelsm writes into type, column ('' for `columns`) and name; None for other keys."""
    for kind in INDEX_OPTIONS:
        prefix = f"{FILE_INDEX_PREFIX}{kind}."
        if key.startswith(prefix):
            column, _, name = key.removeprefix(prefix).rpartition(".")
            return kind, column, name
    return None


def check_index_key(key: str, kind: str, column: str, name: str) -> None:
    """Raise InvalidInputError unless Paimon has an option of these parts of a key."""
    known = INDEX_OPTIONS[kind] if column else (COLUMNS,)
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Use {near[0]!r}." if near else f"Use one of {', '.join(known)}."
    raise InvalidInputError(f"option '{key}': {name!r} is not an option of file indexes. {hint}")


def parse_file_indexes(raw: Mapping[str, str]) -> tuple[ColumnIndex, ...]:
    """Return the file indexes that a table's options declare.

    Raises InvalidInputError for an invalid value, and for an option of a column that has no such index.
    """
    found: dict[tuple[str, str], dict[str, object]] = {}
    for kind in INDEX_OPTIONS:
        key = columns_key(kind)
        for name in Option(key, NAMES, (), "").parse(raw.get(key, "")):  # type: ignore[attr-defined]
            if not name:
                raise InvalidInputError(f"option '{key}': {raw[key]!r} has an empty column name. Remove it.")
            found[kind, name] = {x: option.default for x, option in INDEX_OPTIONS[kind].items()}
    for key, text in raw.items():
        split = split_index_key(key)
        if split is None or not split[1] or split[2] not in INDEX_OPTIONS[split[0]]:
            continue
        kind, column, name = split
        # The options of a MAP column are the defaults for the indexes of its keys.
        if (kind, column) not in found and not any(k == kind and c.startswith(f"{column}[") for k, c in found):
            raise InvalidInputError(
                f"option '{key}': column '{column}' has no such index. Add the column to '{columns_key(kind)}', or "
                "remove the option."
            )
        value = INDEX_OPTIONS[kind][name].parse(text, key)
        if (kind, column) in found:
            found[kind, column][name] = value
    return tuple(_index(kind, column, settings) for (kind, column), settings in found.items())


def _index(kind: str, column: str, settings: Mapping[str, object]) -> ColumnIndex:
    attributes = {"index-block-size": "block_bytes"}
    values = {attributes.get(name, name): value for name, value in settings.items()}
    index = ColumnIndex(kind, column, **values)  # type: ignore[arg-type]
    if kind == BLOOM_FILTER:
        try:
            filter_bits(index.items, index.fpp)
        except InvalidInputError as error:
            raise InvalidInputError(f"options '{FILE_INDEX_PREFIX}{kind}.{column}.…': {error}") from None
    return index
