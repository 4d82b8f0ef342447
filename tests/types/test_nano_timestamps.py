"""Times with nanoseconds as bytes: the same times in the same order, also in slices and with nulls."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.types.nano_timestamps import (
    NANO_TIMESTAMP,
    micros_and_nanos,
    nanos_of,
    validity_buffer,
    with_nanoseconds,
    without_nanoseconds,
)
from tests.nano_times import times_of_nanos

BOUND = 1 << 63
#: The range of 64-bit microseconds in nanoseconds since the epoch.
NANOS = st.integers(-BOUND * 1000, BOUND * 1000 - 1) | st.integers(-3000, 3000)
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@given(st.lists(st.none() | NANOS, max_size=20), st.integers(0, 20))
def test_a_time_is_microseconds_and_nanoseconds(nanos: list[int | None], start: int) -> None:
    times = times_of_nanos(nanos).slice(start) if nanos else pa.array([], NANO_TIMESTAMP)
    found = zip(*(part.tolist() for part in micros_and_nanos(times)), times.is_valid().to_pylist(), strict=True)
    assert [pair if valid else None for *pair, valid in found] == [
        None if value is None else list(divmod(value, 1000)) for value in nanos[start:]
    ]
    assert [None if not time.is_valid else nanos_of(time) for time in times] == nanos[start:]


@given(st.lists(NANOS, min_size=1))
def test_the_bytes_have_the_order_of_the_times(nanos: list[int]) -> None:
    stored = times_of_nanos(nanos).to_pylist()
    order = sorted(range(len(nanos)), key=lambda at: (stored[at], at))
    assert [nanos[at] for at in order] == sorted(nanos)


@pytest.mark.parametrize("unit", PER_SECOND)
@given(values=st.lists(st.none() | st.integers(-(10**10), 10**10), min_size=1, max_size=9), start=st.integers(0, 20))
def test_arrows_times_of_every_unit_are_converted(unit: str, values: list[int | None], start: int) -> None:
    clock = pa.array(values, pa.int64()).cast(pa.timestamp(unit)).slice(start)
    times = with_nanoseconds(clock)
    scale = 10**9 // PER_SECOND[unit]
    expected = times_of_nanos([None if value is None else value * scale for value in values])
    assert times.equals(expected[start:])
    assert times.null_count == clock.null_count
    assert without_nanoseconds(times, pa.timestamp(unit)).equals(clock)


@pytest.mark.parametrize("nanos", [BOUND, -BOUND - 1, BOUND * 1000 - 1])
def test_a_time_outside_the_range_of_arrows_nanoseconds_is_refused(nanos: int) -> None:
    assert without_nanoseconds(times_of_nanos([None, 1]), pa.timestamp("ns")).cast(pa.int64()).to_pylist() == [None, 1]
    with pytest.raises(UnsupportedFeatureError, match="outside the years 1678 to 2261"):
        without_nanoseconds(times_of_nanos([0, nanos]), pa.timestamp("ns"))


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@given(nanos=st.integers(-(10**20), 10**20))
def test_a_time_is_floored_to_a_coarser_unit(unit: str, nanos: int) -> None:
    [found] = without_nanoseconds(times_of_nanos([nanos]), pa.timestamp(unit)).cast(pa.int64()).to_pylist()
    assert found == nanos * PER_SECOND[unit] // 10**9


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_times_outside_the_range_of_microseconds_are_refused(unit: str, sign: int) -> None:
    factor = 10**6 // PER_SECOND[unit]
    end = BOUND // factor
    held, beyond = (pa.array([sign * value, None], pa.int64()).cast(pa.timestamp(unit)) for value in (end - 1, end + 1))
    assert nanos_of(with_nanoseconds(held)[0]) == sign * (end - 1) * factor * 1000
    with pytest.raises(UnsupportedFeatureError, match="outside the years -290307 to 294246"):
        with_nanoseconds(beyond)


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 40))
def test_validity_is_packed_from_the_first_bit_of_a_slice(flags: list[bool], start: int) -> None:
    part = pa.array(flags, pa.bool_()).slice(start)
    bits = np.unpackbits(np.frombuffer(validity_buffer(part), np.uint8), bitorder="little")
    assert bits[: len(part)].astype(bool).tolist() == flags[start:]
