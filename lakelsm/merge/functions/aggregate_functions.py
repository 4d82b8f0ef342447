"""Aggregate functions: each folds the events of a column into one value for each key, by one rule of Paimon.

A function takes (values, events, rule) and returns a `Result`. All work on whole columns. Functions whose value is a
collection are in `collection_functions`, sketches in `sketch_functions`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.merge.events import ADD, RETRACT, REVERSED, SKIP, Events, Result, Values
from lakelsm.merge.functions.collection_functions import collect, list_aggregate, merge_map, merge_map_with_keytime
from lakelsm.merge.functions.nested_functions import nested_partial_update, nested_update
from lakelsm.merge.functions.number_functions import product_values, sum_values
from lakelsm.merge.functions.sketch_functions import bitmap64_union, bitmap_union, hll_union, theta_union
from lakelsm.merge.grouped_rows import Indices, by_rank
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.merge_spec import LAST_NON_NULL_VALUE, LAST_VALUE, PRIMARY_KEY, ColumnRule

Function = Callable[[Values, Events, ColumnRule], Result]


def aggregate(values: Values, events: Events, rule: ColumnRule) -> Result:
    """Fold a column by the function of its rule.

    Raises InvalidInputError for a retraction that the function does not support, and for a result that does not fit the
    type.
    """
    if rule.ignore_retract:
        events = events.without_retractions()
    function, retracts = FUNCTIONS[rule.function or LAST_NON_NULL_VALUE]
    if not retracts:
        events.refuse_retractions(rule)
    return function(values, events, rule)


def last_value(values: Values, events: Events, rule: ColumnRule) -> Indices:
    """Return the value of the last row, NULL included; a retraction makes it NULL."""
    groups, live = events.groups, events.live
    last = groups.last((live == ADD) | (live == RETRACT) | events.seeded)
    return np.where((last >= 0) & (live[last] != RETRACT), last, -1)


def last_non_null_value(values: Values, events: Events, rule: ColumnRule) -> Indices:
    """Return the last value that is not NULL. A retraction of a value makes it NULL; one of NULL has no effect.

    An older row of a sequence group supplies a missing value.
    """
    groups, live, valid = events.groups, events.live, values.valid
    sets = (((live == ADD) | (live == RETRACT)) & valid) | events.seeded
    last = groups.last(sets)
    result = np.where((last >= 0) & valid[last] & (live[last] != RETRACT), last, -1)
    late = (live == REVERSED) & valid
    if late.any():
        late &= groups.positions > last[groups.ids]
        result = np.where(result < 0, groups.first(late), result)
    return result


def first_value(values: Values, events: Events, rule: ColumnRule) -> Indices:
    """Return the value of the first row, NULL included; an older row of a sequence group that comes later replaces it."""
    groups = events.groups
    first = groups.first((events.ops == ADD) | (events.ops == REVERSED))
    late = groups.last((events.live == REVERSED) & (groups.positions != first[groups.ids]))
    opened = (first >= 0) & (events.live[first] == ADD)
    return np.where(late >= 0, late, np.where(opened, first, events.seeds))


def first_non_null_value(values: Values, events: Events, rule: ColumnRule) -> Indices:
    """Return the first value that is not NULL; an older row of a sequence group replaces it, even by NULL."""
    groups = events.groups
    first = groups.first((events.ops == ADD) & values.valid)
    opened = (first >= 0) & (events.live[first] == ADD)
    result = np.where(opened, first, events.seeds)
    late = groups.any(events.ops == REVERSED)
    if late.any():
        result[late] = _first_non_null_out_of_order(values, events)[late]
    return result


def _first_non_null_out_of_order(values: Values, events: Events) -> Indices:
    """Compute `first_non_null_value` row by row: whether a value is the first depends on the older rows before it."""
    groups, valid = events.groups, values.valid
    current = np.full(groups.count, -1)
    filled = np.zeros(groups.count, dtype=bool)
    restarts = events.seeded if events.restarts is None else events.restarts
    for active, positions in by_rank(groups.starts, groups.sizes):
        current[active] = np.where(restarts[positions], positions, current[active])
        ops = events.ops[positions]
        opens = (ops == ADD) & valid[positions] & ~filled[active]
        older = ops == REVERSED
        has_value = (current[active] >= 0) & valid[current[active]]
        confirms = older & ~filled[active] & has_value
        current[active] = np.where(opens | (older & ~confirms), positions, current[active])
        filled[active] |= opens | confirms
    return current


def maximum(values: Values, events: Events, rule: ColumnRule) -> Indices:
    """Return the greatest value; NULL is ignored."""
    return _extreme(values, events, greatest=True)


def minimum(values: Values, events: Events, rule: ColumnRule) -> Indices:
    """Return the smallest value; NULL is ignored."""
    return _extreme(values, events, greatest=False)


def _extreme(values: Values, events: Events, greatest: bool) -> Indices:
    groups = events.groups
    chosen, firsts, _ = groups.narrowed(events.added & values.valid)
    result = np.full(groups.count, -1)
    if not len(chosen):
        return result
    keys = order_keys([values.at(chosen)], signed_zeros=True)
    if keys.dtype.kind != "u":
        keys = np.unique(keys, return_inverse=True)[1].reshape(-1)
    best = (np.maximum if greatest else np.minimum).reduceat(keys, firsts)
    sizes = np.diff(firsts, append=len(chosen))
    hits = np.flatnonzero(keys == np.repeat(best, sizes))
    owner = groups.ids[chosen[hits]]
    result[owner[::-1]] = chosen[hits][::-1]  # The first of equal values wins.
    return result


def bool_and(values: Values, events: Events, rule: ColumnRule) -> Indices:
    """Return whether all values are true; NULL is ignored."""
    return _first_of(values, events, preferred=False)


def bool_or(values: Values, events: Events, rule: ColumnRule) -> Indices:
    """Return whether some value is true; NULL is ignored."""
    return _first_of(values, events, preferred=True)


def _first_of(values: Values, events: Events, preferred: bool) -> Indices:
    groups = events.groups
    counted = events.added & values.valid
    truth = values.at(groups.positions).fill_null(False).to_numpy(zero_copy_only=False)
    decisive = groups.first(counted & (truth == preferred))
    return np.where(decisive >= 0, decisive, groups.first(counted))


def primary_key(values: Values, events: Events, rule: ColumnRule) -> Indices:
    """Return the value of the last row, whatever its kind."""
    return events.groups.last((events.live != SKIP) | events.seeded)


#: The function of each name, and whether it supports retractions.
FUNCTIONS: dict[str, tuple[Function, bool]] = {
    "bool_and": (bool_and, False),
    "bool_or": (bool_or, False),
    "collect": (collect, True),
    "first_non_null_value": (first_non_null_value, False),
    "first_not_null_value": (first_non_null_value, False),
    "first_value": (first_value, False),
    "hll_sketch": (hll_union, False),
    LAST_NON_NULL_VALUE: (last_non_null_value, True),
    LAST_VALUE: (last_value, True),
    "listagg": (list_aggregate, False),
    "max": (maximum, False),
    "merge_map": (merge_map, True),
    "merge_map_with_keytime": (merge_map_with_keytime, False),
    "min": (minimum, False),
    "nested_partial_update": (nested_partial_update, False),
    "nested_update": (nested_update, True),
    PRIMARY_KEY: (primary_key, True),
    "product": (product_values, True),
    "rbm32": (bitmap_union, False),
    "rbm64": (bitmap64_union, False),
    "sum": (sum_values, True),
    "theta_sketch": (theta_union, False),
}


def check_not_null(values: Values, result: Result, rule: ColumnRule) -> None:
    """Raise InvalidInputError if a column that is NOT NULL merged to NULL."""
    if isinstance(result, pa.Array):
        has_null = result.null_count > 0
    else:
        has_null = bool((result < 0).any()) or not bool(values.valid[result].all())
    if has_null:
        ignored = "'ignore-delete'" if rule.function is None else f"'fields.{rule.name}.ignore-retract'"
        raise InvalidInputError(
            f"column '{rule.name}': a merge made it NULL (a retraction, or no value at all), but it is NOT NULL. "
            f"Make the column nullable, or set {ignored} = 'true'."
        )
