"""A reference merge, row by row in plain Python, written from the format's description alone (docs/format.md 12.3).

It shares nothing with lakelsm: no Arrow, no numpy. Slow and plain, to be read against the text.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3
KINDS = {"+I": INSERT, "-U": UPDATE_BEFORE, "+U": UPDATE_AFTER, "-D": DELETE}


def sort_value(value: Any) -> tuple[Any, ...]:
    """A value as something that Python compares as Paimon compares the values of one column.

    NULL is the smallest. Text and bytes compare by unsigned bytes. -0.0 is 0.0, and NaN above all numbers.
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
    """The same as Java's ``Double.compare``, which has -0.0 below 0.0."""
    is_number = isinstance(value, float) and not math.isnan(value)
    return (*sort_value(value), math.copysign(1.0, value)) if is_number else sort_value(value)


class _Backwards:
    """A value that compares the other way round."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Backwards) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Backwards) and bool(self.value == other.value)


def strength(value: Any, descending: bool) -> tuple[Any, ...]:
    """The value of a sequence field as something of which the greatest wins; NULL is the weakest in both directions."""
    plain = sort_value(value)
    return (1, _Backwards(plain)) if descending and value is not None else plain


def sort_key(values: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    """Several values, the most significant first."""
    return tuple(map(sort_value, values))


@dataclass(frozen=True)
class Change:
    """One written row: its key, its sequence fields, its sequence number, its kind, and what it carries."""

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
    """The merge engine `deduplicate`, with the options that change what it does."""

    descending: bool = False
    ignore_delete: bool = False

    def last(self, changes: Sequence[Change]) -> Change | None:
        """The change of one key that survives: the last one given where nothing else decides."""
        kept = [change for change in changes if not (self.ignore_delete and change.retracts)]
        return max(reversed(kept), key=self._rank, default=None)

    def survivors(self, changes: Sequence[Change]) -> list[Change]:
        """The surviving change of every key, in key order; retractions too."""
        by_key: dict[Hashable, list[Change]] = {}
        for change in changes:
            by_key.setdefault(sort_key(change.key), []).append(change)
        last = (self.last(by_key[key]) for key in sorted(by_key))  # type: ignore[type-var]
        return [change for change in last if change is not None]

    def rows(self, changes: Sequence[Change]) -> list[Change]:
        """What a read shows: the survivors that are no retractions."""
        return [change for change in self.survivors(changes) if not change.retracts]

    def _rank(self, change: Change) -> Any:
        sequence = [strength(value, self.descending) for value in change.sequence]
        return sequence, change.number, not change.retracts


@dataclass
class Model:
    """A primary-key table as a dictionary: what batches of rows should leave in it."""

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
        """The table's rows in key order."""
        return [change.value for change in self.engine.rows(self.changes)]
