"""Option texts are read as Java Paimon reads them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from lakelsm.options.option_values import (
    parse_boolean,
    parse_duration,
    parse_int,
    parse_names,
    parse_size,
    parse_stats_mode,
    parse_zone,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("1 b", 1),
        ("128 mb", 128 << 20),
        ("2K", 2048),
        ("1g", 1 << 30),
        ("500B", 500),
        ("1 kibibytes", 1024),
    ],
)
def test_sizes_are_powers_of_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("1 h", 3_600_000),
        ("10ms", 10),
        ("15", 15),
        ("2 days", 172_800_000),
        ("3 min", 180_000),
        ("999 µs", 0),
    ],
)
def test_durations_are_milliseconds(text: str, millis: int) -> None:
    assert parse_duration(text) == millis


@pytest.mark.parametrize(
    "text", ["", "mb", "-1 mb", "1 xb", "1.5 mb", "99999999999999999999", "9999999999 gb"]
)
def test_bad_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_size(text)


@pytest.mark.parametrize("text", ["", "h", "1 fortnight", "-5 s", "1e99 s", "99999999999999999 d", "1 d 2 h"])
def test_bad_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_duration(text)


def test_numbers_must_fit() -> None:
    assert parse_int(" -7 ") == -7
    for text in ("2147483648", "1_0", "x", "1.0"):
        with pytest.raises(ValueError, match=r".+"):
            parse_int(text)


def test_booleans_are_true_or_false_in_any_case() -> None:
    assert parse_boolean("TRUE") is True
    with pytest.raises(ValueError, match="true"):
        parse_boolean("yes")


def test_trailing_empty_names_are_dropped_as_in_java() -> None:
    assert parse_names("ts,") == ("ts",)
    assert parse_names(" a , b ") == ("a", "b")


def test_stats_modes_are_checked() -> None:
    assert parse_stats_mode("TRUNCATE(16)") == "truncate(16)"
    for text in ("truncate", "truncate(0)", "some"):
        with pytest.raises(ValueError, match="truncate"):
            parse_stats_mode(text)


@pytest.mark.parametrize(
    ("text", "hours"),
    [("UTC", 0), ("Z", 0), ("GMT-08:00", -8), ("UTC+9", 9), ("+05:30", 5.5), ("-0330", -3.5), ("Asia/Tokyo", 9)],
)
def test_a_zone_is_a_name_or_an_offset(text: str, hours: float) -> None:
    assert parse_zone(text).utcoffset(datetime(2026, 1, 1)) == timedelta(hours=hours)


@pytest.mark.parametrize(
    "text",
    [
        *("", "Mars/Olympus", "../etc/passwd", "GMT+19", "+05:75", "UTC+"),
        *("localtime", "posixrules", "Factory", "right/Asia/Tokyo", "posix/UTC"),
    ],
)
def test_an_invalid_time_zone_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not (a time zone|within 18 hours)"):
        parse_zone(text)
