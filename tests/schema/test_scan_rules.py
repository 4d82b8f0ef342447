"""Which `scan.*` options go together, by the mode that is set or that they imply."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.options import TableOptions
from lakelsm.schema.scan_rules import check_scan_mode

#: An option that gives a start, with a text of its kind.
STARTS = {
    "scan.timestamp-millis": "1",
    "scan.timestamp": "2024-01-01 00:00:00",
    "scan.file-creation-time-millis": "1",
    "scan.snapshot-id": "1",
    "scan.tag-name": "t",
    "incremental-between": "1,2",
    "incremental-between-timestamp": "1,2",
    "incremental-to-auto-tag": "t",
}
WATERMARK = {"scan.watermark": "1"}
#: The starts that each mode may have, of which it needs one.
MODES = {
    "from-timestamp": ["scan.timestamp-millis", "scan.timestamp"],
    "from-snapshot": ["scan.snapshot-id", "scan.tag-name"],
    "from-snapshot-full": ["scan.snapshot-id"],
    "from-file-creation-time": ["scan.file-creation-time-millis"],
    "incremental": ["incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag"],
}


def check(options: dict[str, str]) -> None:
    check_scan_mode(TableOptions.parse(options))


@pytest.mark.parametrize("key", STARTS)
def test_a_start_alone_implies_its_mode(key: str) -> None:
    check({key: STARTS[key]})


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_takes_exactly_one_of_its_starts_and_none_of_another(mode: str) -> None:
    for key, text in STARTS.items():
        options = {"scan.mode": mode, key: text}
        if key in MODES[mode]:
            check(options)
        else:
            with pytest.raises(InvalidInputError, match=f"'scan.mode' = '{mode}' needs exactly one of .* found none"):
                check(options)
    for others in (MODES[mode], [MODES[mode][0], next(key for key in STARTS if key not in MODES[mode])]):
        if len(others) > 1:
            with pytest.raises(InvalidInputError, match=r"scan\.mode"):
                check({"scan.mode": mode, **{key: STARTS[key] for key in others}})


def test_a_watermark_is_a_start_of_a_snapshot() -> None:
    check(WATERMARK)
    check({"scan.mode": "from-snapshot", **WATERMARK})
    with pytest.raises(InvalidInputError, match=r"found scan.snapshot-id, scan.watermark"):
        check({"scan.snapshot-id": "1", **WATERMARK})


@pytest.mark.parametrize("mode", ["default", "latest-full", "full", "latest", "compacted-full"])
def test_other_modes_take_no_start(mode: str) -> None:
    check({"scan.mode": mode})
    for key, text in STARTS.items():
        with pytest.raises(InvalidInputError, match=f"'{key}' cannot go with 'scan.mode' = '{mode}'; remove one of both"):
            check({"scan.mode": mode, key: text})


def test_starts_that_imply_different_modes_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'scan.snapshot-id' cannot go with 'scan.mode' = 'from-timestamp'"):
        check({"scan.snapshot-id": "1", "scan.timestamp-millis": "1"})
    check({})
