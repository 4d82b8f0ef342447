"""The aggregate functions `sum` and `product`, with Paimon's types and overflow.

Integers never wrap around: a step that leaves the type's range is an error. A DECIMAL that exceeds its precision
becomes NULL, and the next value starts again, as in pypaimon and, above 18 digits, in Java; up to 18 digits Java keeps
a sum that its type cannot represent. FLOAT and DOUBLE are folded row by row, because rounding depends on the order.
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

#: Larger groups are folded one at a time.
_SIDE_BY_SIDE = 64
_WORD = 2**64
_INTEGER_NAMES = {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}

Numbers = npt.NDArray[Any]
#: Adds (False) or retracts (True) a value in an accumulator (None: empty); raises ArithmeticError.
Step = Callable[[Any, Any, bool], Any]


def sum_values(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Return the sum of the values; NULL is ignored; retractions are subtracted."""
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
    """Return the product of the values; NULL is ignored; a retraction divides, or has no effect without a product."""
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
    """Return the smallest number that is too large: 2^(bits-1) of an integer type, 10^precision of a decimal."""
    return int(10**kind.precision if pa.types.is_decimal(kind) else 1 << (kind.bit_width - 1))


def _spread(numbers: Numbers, valid: Mask | None, items: Items, events: Events, kind: pa.DataType) -> pa.Array:
    """Assign each group its number; NULL for groups without items."""
    null = np.ones(events.groups.count, dtype=bool)
    null[items.owners] = False if valid is None else ~valid
    result = np.zeros(events.groups.count, dtype=numbers.dtype)
    result[items.owners] = numbers
    return pa.array(result, type=kind, mask=null)


def _integer_sums(array: pa.Array, items: Items, retracted: Mask, rule: ColumnRule) -> Numbers:
    """Return the sum of each group; every partial sum must be in the type's range."""
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
            operand = np.where(retracted, ~numbers, numbers)  # Only the sign of the operand is used.
            bad = ((previous ^ partial) & (operand ^ partial)) < 0
    if bad.any():
        raise _out_of_range(rule, kind)
    sums: Numbers = partial[items.firsts + items.sizes - 1].astype(kind.to_pandas_dtype())
    return sums


def _float_sums(numbers: Numbers, items: Items) -> Numbers:
    sums = np.zeros(len(items.firsts), dtype=numbers.dtype)
    with np.errstate(all="ignore"):
        for active, positions in by_rank(items.firsts, np.minimum(items.sizes, _SIDE_BY_SIDE)):
            first = positions == items.firsts[active]
            sums[active] = np.where(first, numbers[positions], sums[active] + numbers[positions])
        for group in np.flatnonzero(items.sizes > _SIDE_BY_SIDE).tolist():
            rest = numbers[items.firsts[group] + _SIDE_BY_SIDE : items.firsts[group] + items.sizes[group]]
            # np.add.accumulate adds from left to right; np.sum does not.
            sums[group] = np.add.accumulate(np.concatenate([sums[group : group + 1], rest]))[-1]
    return sums


def _float_products(numbers: Numbers, items: Items, retracted: Mask) -> tuple[Numbers, Mask]:
    products = np.zeros(len(items.firsts), dtype=numbers.dtype)
    valid = np.zeros(len(items.firsts), dtype=bool)
    with np.errstate(all="ignore"):
        for active, positions in by_rank(items.firsts, items.sizes):
            product, value, divides = products[active], numbers[positions], retracted[positions]
            opens = ~valid[active] & ~divides
            stepped = np.where(divides, product / value, product * value)
            products[active] = np.where(opens, value, np.where(valid[active], stepped, product))
            valid[active] |= opens
    return products, valid


def _unscaled(array: pa.Array) -> Numbers:
    """Return the unscaled integers of a decimal128 array, as Python integers."""
    words = np.frombuffer(array.buffers()[1], dtype="<u8")[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[0::2].astype(object), words[1::2].view(np.int64).astype(object)
    numbers: Numbers = high * _WORD + low
    return numbers


def _decimal_sums(array: pa.Array, items: Items, retracted: Mask, events: Events) -> pa.Array:
    """Sum in 64 bits if no group can exceed 64 bits or the type; otherwise row by row."""
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
    """Return decimals of 64-bit unscaled integers."""
    words = np.zeros((events.groups.count, 2), dtype=np.int64)
    words[items.owners, 0] = unscaled
    words[items.owners, 1] = unscaled >> 63
    null = np.ones(events.groups.count, dtype=bool)
    null[items.owners] = False
    valid = pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(kind, len(words), [valid, pa.py_buffer(words.tobytes())])


def _folded(array: pa.Array, items: Items, retracted: Mask, events: Events, step: Step) -> pa.Array:
    """Fold exact numbers row by row."""
    decimal = pa.types.is_decimal(array.type)
    numbers = _unscaled(array).tolist() if decimal else array.to_pylist()
    values = list(zip(numbers, retracted.tolist()))
    result: list[Any] = [None] * events.groups.count
    for group, first, size in zip(items.owners.tolist(), items.firsts.tolist(), items.sizes.tolist()):
        accumulator = None
        for number, retracts in values[first : first + size]:
            accumulator = step(accumulator, number, retracts)
        result[group] = accumulator
    if decimal:
        scale = array.type.scale
        result = [None if number is None else _as_decimal(number, scale) for number in result]
    return pa.array(result, array.type)


def _as_decimal(unscaled: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((unscaled < 0, digits, -scale))


def _decimal_sum(limit: int) -> Step:
    def step(accumulator: int | None, value: int, retracts: bool) -> int | None:
        total = (accumulator or 0) + (-value if retracts else value)
        return total if abs(total) < limit else None

    return step


def _integer_product(limit: int) -> Step:
    def step(accumulator: int | None, value: int, retracts: bool) -> int | None:
        if accumulator is None:  # Nothing to divide: the retraction has no effect.
            return None if retracts else value
        result = _java_quotient(accumulator, value) if retracts else accumulator * value
        if not -limit <= result < limit:
            raise OverflowError
        return result

    return step


def _java_quotient(dividend: int, divisor: int) -> int:
    """Divide integers and round towards zero."""
    return abs(dividend) // abs(divisor) * (1 if (dividend < 0) == (divisor < 0) else -1)


def _decimal_product(kind: pa.DataType, limit: int) -> Step:
    one = 10**kind.scale

    def step(accumulator: int | None, value: int, retracts: bool) -> int | None:
        if accumulator is None:
            return None if retracts else value
        exact = Fraction(accumulator, value) * one if retracts else Fraction(accumulator * value, one)
        if retracts and not _terminates((exact / one).denominator):
            raise ArithmeticError
        doubled = exact * 2
        rounded = (abs(doubled.numerator) + doubled.denominator) // (2 * doubled.denominator)
        result = rounded if exact >= 0 else -rounded
        return result if abs(result) < limit else None

    return step


def _terminates(denominator: int) -> bool:
    """Return whether a fraction with this denominator is a finite decimal; Java refuses others."""
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1


def _out_of_range(rule: ColumnRule, kind: pa.DataType) -> InvalidInputError:
    integer = pa.types.is_integer(kind)
    name = _INTEGER_NAMES[kind.bit_width] if integer else f"DECIMAL({kind.precision}, {kind.scale})"
    return InvalidInputError(
        f"column '{rule.name}': the result of aggregate function '{rule.function}' does not fit {name} for some key "
        "(overflow, or a division without a result). Widen the column or correct the rows."
    )
