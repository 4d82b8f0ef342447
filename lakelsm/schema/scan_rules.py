"""Which `scan.*` options go together (Paimon's `SchemaValidation#validateStartupMode`)."""

from __future__ import annotations

from collections.abc import Mapping

from lakelsm.errors import InvalidInputError
from lakelsm.options import ScanMode, TableOptions

_TIMES = ("scan.timestamp-millis", "scan.timestamp")
_CHANGES = ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag")
_FILE_TIME = "scan.file-creation-time-millis"
_SNAPSHOT = "scan.snapshot-id"
_TAG = "scan.tag-name"
_WATERMARK = "scan.watermark"

# mode: (exactly one of these must be set, none of these may be set)
_MODES: Mapping[ScanMode, tuple[tuple[str, ...], tuple[str, ...]]] = {
    ScanMode.FROM_TIMESTAMP: (_TIMES, (_SNAPSHOT, _FILE_TIME, _TAG, *_CHANGES)),
    ScanMode.FROM_SNAPSHOT: ((_SNAPSHOT, _TAG, _WATERMARK), (*_TIMES, _FILE_TIME, *_CHANGES)),
    ScanMode.INCREMENTAL: (_CHANGES, (_SNAPSHOT, *_TIMES, _FILE_TIME, _TAG)),
    ScanMode.FROM_SNAPSHOT_FULL: ((_SNAPSHOT,), (*_TIMES, _FILE_TIME, _TAG, *_CHANGES)),
    ScanMode.FROM_FILE_CREATION_TIME: ((_FILE_TIME,), (_SNAPSHOT, *_TIMES, _TAG, *_CHANGES)),
}
_EVERY_START = (*_TIMES, _FILE_TIME, _SNAPSHOT, _TAG, *_CHANGES)


def check_scan_mode(options: TableOptions) -> None:
    """Raises InvalidInputError where the options of a start do not fit `scan.mode`, or the mode that they imply."""
    mode = _effective_mode(options)
    wanted, forbidden = _MODES.get(mode, ((), _EVERY_START))
    present = [key for key in wanted if options.is_set(key)]
    if wanted and len(present) != 1:
        raise InvalidInputError(
            f"option 'scan.mode' = '{mode.value}' needs exactly one of {', '.join(wanted)}, "
            f"found {', '.join(present) or 'none'}"
        )
    for key in forbidden:
        if options.is_set(key):
            raise InvalidInputError(
                f"option '{key}' cannot go with 'scan.mode' = '{mode.value}'; remove one of both"
            )


def _effective_mode(options: TableOptions) -> ScanMode:
    if options.is_set("scan.mode"):
        return options.scan_mode
    implied = (
        (_TIMES, ScanMode.FROM_TIMESTAMP),
        ((_FILE_TIME,), ScanMode.FROM_FILE_CREATION_TIME),
        ((_SNAPSHOT, _TAG, _WATERMARK), ScanMode.FROM_SNAPSHOT),
        (_CHANGES, ScanMode.INCREMENTAL),
    )
    for keys, mode in implied:
        if any(options.is_set(key) for key in keys):
            return mode
    return ScanMode.DEFAULT
