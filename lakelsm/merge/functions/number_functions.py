"""The aggregate functions `sum` and `product`, with Paimon's types and overflow.

Integers never wrap: a step that leaves the type's range is an error. A DECIMAL that leaves its precision becomes NULL,
and the next value starts again, as in pypaimon and, above 18 digits, in Java, which otherwise keeps a sum that its type
cannot hold. FLOAT and DOUBLE are folded row after row, as rounding depends on the order.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.merge.events import RETRACT, Events, Items, Values
from lakelsm.merge.grouped_rows import Mask, by_rank
from lakelsm.merge.merge_spec import ColumnRule

#: Groups longer than this are folded one by one.
_SIDE_BY_SIDE = 64
_WORD = 2**64
_INTEGER_NAMES = {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}

Numbers = npt.NDArray[Any]
#: Combines an accumulator (None: empty) with a value that is added (False) or retracted (True); raises ArithmeticError.
Step = Callable[[Any, Any, bool], Any]


def sum_values(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """The sum of the values; NULL counts for nothing; retractions are subtracted."""
    items = Items.of(events, values.valid)
    array = values.at(items.positions)
    retracted = items.ops == RETRACT
    if pa.types.is_integer(array.type):
        return _spread(_integer_sums(array, items, retracted, rule), None, items, events, array.type)
    if pa.types.is_decimal(array.type):
        return _decimal_sums(array, items, retracted, events)
    numbers = array.to_numpy(zero_copy_only=False)
    return _spread(_float_sums(np.where(retracted, -numbers, numbers), items), None, items, events, array.type)


def product_values(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """The product of the values; NULL counts for nothing; retractions divide, unless there is no product yet."""
    items = Items.of(events, values.valid)
    array = values.at(items.positions)
    retracted = items.ops == RETRACT
    if pa.types.is_floating(array.type):
        products, valid = _float_products(array.to_numpy(zero_copy_only=False), items, retracted)
        return _spread(products, valid, items, events, array.type)
    kind, limit = array.type, _limit_of(array.type)
    step = _decimal_product(kind, limit) if pa.types.is_decimal(kind) else _integer_product(limit)
    try:
        return _folded(array, items, retracted, events, step)
    except ArithmeticError:
        raise _out_of_range(rule, kind) from None


def _limit_of(kind: pa.DataType) -> int:
    """The least number that is too large: 2^(bits-1) of an integer type, 10^precision of a decimal."""
    return int(10**kind.precision if pa.types.is_decimal(kind) else 1 << (kind.bit_width - 1))


def _spread(numbers: Numbers, valid: Mask | None, items: Items, events: Events, kind: pa.DataType) -> pa.Array:
    """Give each group of the events its number; NULL for those without items."""
    null = np.ones(events.groups.count, dtype=bool)
    null[items.owners] = False if valid is None else ~valid
    result = np.zeros(events.groups.count, dtype=numbers.dtype)
    result[items.owners] = numbers
    return pa.array(result, type=kind, mask=null)


def _integer_sums(array: pa.Array, items: Items, retracted: Mask, rule: ColumnRule) -> Numbers:
    """Sums of each group; every partial sum must be in the type's range."""
    kind = array.type
    numbers = array.to_numpy(zero_copy_only=False).astype(np.int64)
    with np.errstate(over="ignore"):
        totals = np.cumsum(np.where(retracted, -numbers, numbers))
        before = np.where(items.firsts > 0, totals[items.firsts - 1], 0)
        partial = totals - np.repeat(before, items.sizes)
        if kind.bit_width < 64:
            bad = (partial < -_limit_of(kind)) | (partial >= _limit_of(kind))
        else:
            previous = np.concatenate([[0], partial[:-1]])
            previous[items.firsts] = 0
            operand = np.where(retracted, ~numbers, numbers)  # The sign is what counts.
            bad = ((previous ^ partial) & (operand ^ partial)) < 0
    if bad.any():
        raise _out_of_range(rule, kind)
    sums: Numbers = partial[items.firsts + items.sizes - 1].astype(kind.to_pandas_dtype())
    return sums


def _float_sums(numbers: Numbers, items: Items) -> Numbers:
    sums = np.zeros(len(items.firsts), dtype=numbers.dtype)
    with np.errstate(all="ignore"):
        for active, at in by_rank(items.firsts, np.minimum(items.sizes, _SIDE_BY_SIDE)):
            first = at == items.firsts[active]
            sums[active] = np.where(first, numbers[at], sums[active] + numbers[at])
        for group in np.flatnonzero(items.sizes > _SIDE_BY_SIDE).tolist():
            rest = numbers[items.firsts[group] + _SIDE_BY_SIDE : items.firsts[group] + items.sizes[group]]
            # accumulate, unlike sum, goes from left to right.
            sums[group] = np.add.accumulate(np.concatenate([sums[group : group + 1], rest]))[-1]
    return sums


def _float_products(numbers: Numbers, items: Items, retracted: Mask) -> tuple[Numbers, Mask]:
    products = np.zeros(len(items.firsts), dtype=numbers.dtype)
    valid = np.zeros(len(items.firsts), dtype=bool)
    with np.errstate(all="ignore"):
        for active, at in by_rank(items.firsts, items.sizes):
            held, value, divides = products[active], numbers[at], retracted[at]
            opens = ~valid[active] & ~divides
            stepped = np.where(divides, held / value, held * value)
            products[active] = np.where(opens, value, np.where(valid[active], stepped, held))
            valid[active] |= opens
    return products, valid


def _unscaled(array: pa.Array) -> Numbers:
    """The unscaled integers of a decimal128 array, as Python integers."""
    words = np.frombuffer(array.buffers()[1], dtype="<u8")[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[0::2].astype(object), words[1::2].view(np.int64).astype(object)
    numbers: Numbers = high * _WORD + low
    return numbers


def _decimal_sums(array: pa.Array, items: Items, retracted: Mask, events: Events) -> pa.Array:
    """64-bit sums where no group can leave the range of 64 bits or of the type; row after row otherwise."""
    limit = _limit_of(array.type)
    words = np.frombuffer(array.buffers()[1], dtype="<i8")[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[0::2], words[1::2]
    longest = int(items.sizes.max(initial=0))
    small = len(low) == 0 or (bool((high == low >> 63).all()) and int(np.abs(low // 2 + 1).max()) * 2 * longest < 2**63)
    if small and len(low):
        totals = np.cumsum(np.where(retracted, -low, low))
        with np.errstate(over="ignore"):
            before = np.where(items.firsts > 0, totals[items.firsts - 1], 0)
            partial = totals - np.repeat(before, items.sizes)
        if limit >= 2**63 or int(np.abs(partial).max()) < limit:
            return _decimals(partial[items.firsts + items.sizes - 1], items, events, array.type)
    return _folded(array, items, retracted, events, _decimal_sum(limit))


def _decimals(unscaled: Numbers, items: Items, events: Events, kind: pa.DataType) -> pa.Array:
    """Decimals of 64-bit unscaled integers."""
    words = np.zeros((events.groups.count, 2), dtype=np.int64)
    words[items.owners, 0] = unscaled
    words[items.owners, 1] = unscaled >> 63
    null = np.ones(events.groups.count, dtype=bool)
    null[items.owners] = False
    valid = pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(kind, len(words), [valid, pa.py_buffer(words.tobytes())])


def _folded(array: pa.Array, items: Items, retracted: Mask, events: Events, step: Step) -> pa.Array:
    """Fold exact numbers row after row."""
    decimal = pa.types.is_decimal(array.type)
    numbers = _unscaled(array).tolist() if decimal else array.to_pylist()
    values = list(zip(numbers, retracted.tolist()))
    result: list[Any] = [None] * events.groups.count
    for group, first, size in zip(items.owners.tolist(), items.firsts.tolist(), items.sizes.tolist()):
        held = None
        for number, retracts in values[first : first + size]:
            held = step(held, number, retracts)
        result[group] = held
    if decimal:
        scale = array.type.scale
        result = [None if number is None else _as_decimal(number, scale) for number in result]
    return pa.array(result, array.type)


def _as_decimal(unscaled: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((unscaled < 0, digits, -scale))


def _decimal_sum(limit: int) -> Step:
    def step(held: int | None, value: int, retracts: bool) -> int | None:
        total = (held or 0) + (-value if retracts else value)
        return total if abs(total) < limit else None

    return step


def _integer_product(limit: int) -> Step:
    def step(held: int | None, value: int, retracts: bool) -> int | None:
        if held is None:  # A retraction divides nothing.
            return None if retracts else value
        result = _java_quotient(held, value) if retracts else held * value
        if not -limit <= result < limit:
            raise OverflowError
        return result

    return step


def _java_quotient(dividend: int, divisor: int) -> int:
    """Division of integers that cuts towards zero."""
    return abs(dividend) // abs(divisor) * (1 if (dividend < 0) == (divisor < 0) else -1)


def _decimal_product(kind: pa.DataType, limit: int) -> Step:
    one = 10**kind.scale

    def step(held: int | None, value: int, retracts: bool) -> int | None:
        if held is None:
            return None if retracts else value
        exact = Fraction(held, value) * one if retracts else Fraction(held * value, one)
        if retracts and not _terminates((exact / one).denominator):
            raise ArithmeticError
        doubled = exact * 2
        rounded = (abs(doubled.numerator) + doubled.denominator) // (2 * doubled.denominator)
        result = rounded if exact >= 0 else -rounded
        return result if abs(result) < limit else None

    return step


def _terminates(denominator: int) -> bool:
    """Whether a fraction with this denominator has an end as a decimal; Java refuses the others."""
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1


def _out_of_range(rule: ColumnRule, kind: pa.DataType) -> InvalidInputError:
    integer = pa.types.is_integer(kind)
    name = _INTEGER_NAMES[kind.bit_width] if integer else f"DECIMAL({kind.precision}, {kind.scale})"
    return InvalidInputError(
        f"aggregate function '{rule.function}' of column '{rule.name}' has no result of type {name} for some key "
        "(overflow, or a division without result); make the column wider or correct the rows"
    )
