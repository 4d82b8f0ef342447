"""Python values as Arrow arrays: the result of `pa.array`, in a process without pandas."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.types.python_arrays import array_of

EAST = timezone(timedelta(hours=9))
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["a", "", None, "naïve ☃", "x" * 300]),
    (pa.large_string(), ["a", "", None, "naïve ☃"]),
    (pa.binary(), [b"a", b"", None, bytes(300)]),
    (pa.large_binary(), [b"a", None]),
    (pa.int64(), [1, None, -(1 << 63), (1 << 63) - 1]),
    (pa.int32(), [None, -1, 2_147_483_647]),
    (pa.float64(), [0.1, None, float("inf"), -0.0]),
    (pa.timestamp("ms"), [0, None, -1, datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_000)]),
    (pa.timestamp("us", "UTC"), [5, None, datetime(2026, 1, 1, tzinfo=timezone.utc), datetime(2026, 1, 1, tzinfo=EAST)]),
    (pa.list_(pa.int64()), [[1, 2], None, [], [None]]),
    (pa.large_list(pa.large_string()), [["a", None], None, []]),
    (pa.list_(pa.list_(pa.string())), [[["a"], None], None, [], [["b", None]]]),
    (pa.bool_(), [True, None, False]),
    (pa.timestamp("ns"), [1, None]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_the_array_equals_that_of_pyarrow_with_any_number_of_values(kind: pa.DataType, values: list[Any]) -> None:
    for given in (values, [], [None], tuple(values) * 9):
        made = array_of(given, kind)
        made.validate(full=True)
        assert made.equals(pa.array(given, kind))


@pytest.mark.parametrize(("kind", "value"), [(pa.int32(), 1 << 31), (pa.int64(), 1 << 63), (pa.timestamp("ms"), 1 << 63)])
def test_an_integer_outside_the_range_of_the_type_is_an_overflow(kind: pa.DataType, value: int) -> None:
    with pytest.raises(OverflowError):
        array_of([value], kind)


def test_pandas_is_not_loaded() -> None:
    program = (
        "import sys, pyarrow as pa\n"
        "from lakelsm.types.python_arrays import array_of, scalar_of\n"
        "array_of([['a'], None], pa.list_(pa.string())), array_of([1], pa.timestamp('ms'))\n"
        "assert [scalar_of(v, pa.bool_()).as_py() for v in (True, None)] == [True, None]\n"
        "array_of([b'x', None], pa.large_binary())\n"
        "assert 'pandas' not in sys.modules"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
