"""Checks of Python values for which Arrow infers a type. Arrow takes the class of the first value for all of them,
without an error: a datetime after a date would lose its time, and text after bytes its type.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np

#: Classes of missing values. pandas' own are listed by name, because pandas may not be loaded.
MISSING = ("NoneType", "NAType", "NaTType")
#: Kinds of values by their classes; a subclass comes before its base class.
_KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool, np.bool_), "booleans"),
    ((int, float, Decimal, np.number), "numbers"),
    ((str,), "texts"),
    ((bytes, bytearray, memoryview), "bytes"),
    ((dt.datetime, np.datetime64), "timestamps"),
    ((dt.date,), "dates"),
    ((dt.time,), "times"),
    ((list, tuple, set, frozenset, np.ndarray), "lists"),
    ((Mapping,), "dicts"),
)


def plain_values(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values with None instead of pandas' missing values."""
    missing = {cls for cls in set(map(type, values)) if cls.__name__ in MISSING}
    if missing <= {type(None)}:
        return values
    return [None if type(value) in missing else value for value in values]


def check_one_kind(values: Iterable[Any]) -> None:
    """Raise ValueError if Arrow, which infers one type for the values, would change some of them.

    ``values`` must be repeatable. Lists within it are checked without a copy.
    """
    _check(lambda: values)


def _check(fresh: Callable[[], Iterable[Any]]) -> None:
    kinds = _kinds_of(fresh())
    if len(kinds) > 1:  # In pandas, NaN can also be a missing text.
        kinds = _kinds_of(value for value in fresh() if not (isinstance(value, float) and value != value))
    if len(kinds) > 1:
        raise ValueError(f"{' and '.join(sorted(kinds))} are mixed")
    if kinds & {"timestamps", "times"}:
        _check_zones(fresh())
    if "lists" in kinds:
        _check(lambda: chain.from_iterable(value for value in fresh() if _has_objects(value)))
    if "dicts" in kinds:
        for key in dict.fromkeys(chain.from_iterable(value for value in fresh() if isinstance(value, Mapping))):
            _check(lambda key=key: (value.get(key) for value in fresh() if isinstance(value, Mapping)))  # type: ignore[misc]


def _has_objects(value: Any) -> bool:
    """Return whether a value is a list of Python objects."""
    if isinstance(value, np.ndarray):
        return bool(value.dtype.hasobject)
    return isinstance(value, (list, tuple, set, frozenset))


def _kinds_of(values: Iterable[Any]) -> set[str]:
    return {kind for kind in map(_kind, set(map(type, values))) if kind}


def _kind(cls: type) -> str | None:
    if cls.__name__ in MISSING:
        return None
    return next((kind for classes, kind in _KINDS if issubclass(cls, classes)), None)


def _check_zones(values: Iterable[Any]) -> None:
    zoned: set[bool] = set()
    for value in values:
        if isinstance(value, (dt.datetime, dt.time)) and type(value).__name__ not in MISSING:
            zoned.add(value.tzinfo is not None)
            if value.tzinfo is not None and isinstance(value, dt.time):
                raise ValueError("a time of day has a time zone, and TIME has none")
            if getattr(value, "nanosecond", 0):
                raise ValueError("Arrow cuts the nanoseconds of objects: make the column a datetime64[ns]")
    if len(zoned) > 1:
        raise ValueError("timestamps with and without a time zone are mixed")
