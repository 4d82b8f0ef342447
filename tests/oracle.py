"""A reference merge, row by row in plain Python, written only from the format's description (docs/format.md 12.3).

It shares no code with lakelsm and uses neither Arrow nor numpy. It is slow and simple, to be compared with the text.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3
KINDS = {"+I": INSERT, "-U": UPDATE_BEFORE, "+U": UPDATE_AFTER, "-D": DELETE}


def sort_value(value: Any) -> tuple[Any, ...]:
    """Return a value that Python compares as Paimon compares the values of one column.

    NULL is the minimum. Text and bytes compare by unsigned bytes. -0.0 equals 0.0, and NaN is above all numbers.
    """
    if value is None:
        return (0,)
    if isinstance(value, str):
        return (1, value.encode("utf-8"))
    if isinstance(value, float):
        if math.isnan(value):
            return (1, 1, 0.0)
        return (1, 0, value)
    return (1, value)


def java_value(value: Any) -> tuple[Any, ...]:
    """Return a value that compares as in Java's ``Double.compare``, which has -0.0 below 0.0."""
    is_number = isinstance(value, float) and not math.isnan(value)
    return (*sort_value(value), math.copysign(1.0, value)) if is_number else sort_value(value)


class _Backwards:
    """A value with the reverse order."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Backwards) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Backwards) and bool(self.value == other.value)


def strength(value: Any, descending: bool) -> tuple[Any, ...]:
    """Return a value of a sequence field whose maximum wins. NULL is the minimum in both directions."""
    plain = sort_value(value)
    return (1, _Backwards(plain)) if descending and value is not None else plain


def sort_key(values: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    """Return the sort key of several values, the most significant first."""
    return tuple(map(sort_value, values))


@dataclass(frozen=True)
class Change:
    """One written row: its key, sequence fields, sequence number, kind, and values."""

    key: tuple[Any, ...]
    number: int
    kind: int = INSERT
    sequence: tuple[Any, ...] = ()
    value: Any = None

    @property
    def retracts(self) -> bool:
        return self.kind in (UPDATE_BEFORE, DELETE)


@dataclass(frozen=True)
class Deduplicate:
    """The merge engine `deduplicate`, with the options that change its result."""

    descending: bool = False
    ignore_delete: bool = False

    def last(self, changes: Sequence[Change]) -> Change | None:
        """Return the change of one key that wins: the last given one if all else is equal."""
        kept = [change for change in changes if not (self.ignore_delete and change.retracts)]
        return max(reversed(kept), key=self._rank, default=None)

    def survivors(self, changes: Sequence[Change]) -> list[Change]:
        """Return the winning change of every key, in key order, retractions included."""
        by_key: dict[Hashable, list[Change]] = {}
        for change in changes:
            by_key.setdefault(sort_key(change.key), []).append(change)
        last = (self.last(by_key[key]) for key in sorted(by_key))  # type: ignore[type-var]
        return [change for change in last if change is not None]

    def rows(self, changes: Sequence[Change]) -> list[Change]:
        """Return the rows of a read: the winners that are not retractions."""
        return [change for change in self.survivors(changes) if not change.retracts]

    def _rank(self, change: Change) -> Any:
        sequence = [strength(value, self.descending) for value in change.sequence]
        return sequence, change.number, not change.retracts


@dataclass
class Model:
    """A primary-key table as a dictionary: the expected content after batches of rows."""

    key: tuple[str, ...]
    sequence: tuple[str, ...] = ()
    engine: Deduplicate = field(default_factory=Deduplicate)
    changes: list[Change] = field(default_factory=list)

    def write(self, rows: Iterable[Mapping[str, Any]], kinds: Iterable[str] | None = None) -> None:
        """Add a batch; without ``kinds`` every row is +I."""
        batch = list(rows)
        for row, kind in zip(batch, kinds if kinds is not None else ["+I"] * len(batch), strict=True):
            key = tuple(row[name] for name in self.key)
            sequence = tuple(row[name] for name in self.sequence)
            self.changes.append(Change(key, len(self.changes), KINDS[kind], sequence, dict(row)))

    def rows(self) -> list[dict[str, Any]]:
        """Return the table's rows in key order."""
        return [change.value for change in self.engine.rows(self.changes)]
