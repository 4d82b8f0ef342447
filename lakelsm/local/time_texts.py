"""Parses texts of dates and times in ISO 8601 form.

A date is '2026-01-31'. A time follows it after a blank or 'T' as '12:30', '12:30:00' or with a fraction of up to nine
digits, a time zone as 'Z', '+02:00', '+0200' or '+02'. A TIMESTAMP has no zone, a TIMESTAMP_LTZ needs one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.types import AtomicType, to_arrow
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP, nano_timestamps

_DAY = "(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
_CLOCK = r"(?P<minute>[0-9]{2}:[0-9]{2})(?P<second>:[0-9]{2}(?:\.(?P<fraction>[0-9]{1,9}))?)?"
_ZONE = "(?:Z|(?P<sign>[+-])(?P<hours>[0-9]{2})(?::?(?P<minutes>[0-9]{2}))?)"
_FORMS = {
    "TIME": rf"\A{_CLOCK}\z",
    "TIMESTAMP": rf"\A{_DAY}(?:[ T]{_CLOCK})?\z",
    "TIMESTAMP_LTZ": rf"\A{_DAY}[ T]{_CLOCK}{_ZONE}\z",
}
_MICROS = 1_000_000
#: The largest offset of a zone from UTC, in minutes.
_MAX_OFFSET = 18 * 60


class TimeTextError(Exception):
    """A text is not a value of the type."""


def times_of_text(texts: pa.Array, target: AtomicType) -> pa.Array:
    """Return the values of a DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ column, in `to_arrow` of its type.

    Fractions finer than the column's are floored. Raises TimeTextError or pyarrow.ArrowInvalid for other texts.
    """
    wanted = to_arrow(target)
    if target.root == "DATE":
        return texts.cast(wanted)
    found = pc.extract_regex(texts, _FORMS[target.root])
    if found.null_count != texts.null_count:
        raise TimeTextError
    parts = dict(zip((field.name for field in found.type), found.flatten()))
    nanos = _integers(pc.utf8_rpad(parts["fraction"], 9, "0"))
    micros = _seconds(parts) * _MICROS + nanos // 1000
    validity = texts.is_valid() if texts.null_count else None
    if wanted == NANO_TIMESTAMP:
        return nano_timestamps(micros, nanos % 1000, validity)
    mask = None if validity is None else ~validity.to_numpy(zero_copy_only=False)
    if target.root == "TIME":
        return pa.array(micros // 1000, pa.int64(), mask=mask).cast(pa.int32()).cast(wanted)
    return cast_column(pa.array(micros, pa.int64(), mask=mask).cast(pa.timestamp("us", wanted.tz)), wanted)


def _seconds(parts: dict[str, pa.Array]) -> npt.NDArray[np.int64]:
    """Return seconds since the epoch in UTC, 0 for NULL; for a time of day, seconds since midnight."""
    minute = _filled(parts["minute"], "00:00")
    second = _filled(pc.utf8_slice_codeunits(parts["second"], 0, 3), ":00")
    day = parts.get("day", pa.scalar("1970-01-01"))
    times = pc.binary_join_element_wise(day, " ", minute, second, "").cast(pa.timestamp("s"))
    seconds: npt.NDArray[np.int64] = pc.fill_null(times.cast(pa.int64()), 0).to_numpy()
    if "sign" not in parts:
        return seconds
    minutes = _integers(_filled(parts["minutes"], "00"))
    ahead = _integers(_filled(parts["hours"], "00")) * 60 + minutes
    if ahead.max(initial=0) > _MAX_OFFSET or minutes.max(initial=0) > 59:
        raise TimeTextError
    west = pc.fill_null(pc.equal(parts["sign"], "-"), False).to_numpy(zero_copy_only=False)
    seconds = seconds - np.where(west, -ahead, ahead) * 60
    return seconds


def _filled(texts: pa.Array, instead: str) -> pa.Array:
    """Return the texts with ``instead`` for each empty one."""
    return pc.if_else(pc.equal(texts, ""), instead, texts)


def _integers(digits: pa.Array) -> npt.NDArray[np.int64]:
    """Return the numbers that texts of digits have, 0 for NULL."""
    numbers: npt.NDArray[np.int64] = pc.fill_null(digits.cast(pa.int64()), 0).to_numpy()
    return numbers

