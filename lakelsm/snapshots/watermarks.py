"""Snapshots by their watermark, as in Paimon's `SnapshotManager`.

A snapshot inherits the watermark of the one before, so watermarks ascend with ids, and only the first snapshots of a
table have none. They are found by bisection.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from lakelsm.errors import SnapshotNotFoundError
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.table_store import TableStore

#: The value that Flink writes for a snapshot without a watermark.
NO_WATERMARK = -(2**63)


def watermark_of(snapshot: Snapshot) -> int | None:
    """Return the watermark of a snapshot; None if it has none."""
    return None if snapshot.watermark == NO_WATERMARK else snapshot.watermark


def first_with_watermark(store: TableStore, watermark: int, *, tags: bool = False) -> Snapshot:
    """Return the first snapshot whose watermark is at least ``watermark``: Paimon's ``scan.watermark``.

    With ``tags``, it may be one that only a tag keeps. Raises SnapshotNotFoundError without such a snapshot.
    """
    found = [tag.snapshot for tag in store.tags.all().values()] if tags else []
    ids = store.snapshots.ids()
    for number in ids[_position(store, ids, watermark) :]:
        snapshot = store.snapshots.try_get(number)
        if snapshot is not None:
            found.append(snapshot)
            break
    reached = ((watermark_of(each), each.id, each) for each in found)
    kept = [(known, number, each) for known, number, each in reached if known is not None and known >= watermark]
    if not kept:
        raise SnapshotNotFoundError(
            f"Table {store.name}: no snapshot has the watermark {watermark} or a later one. {_newest_text(store)}"
        )
    return min(kept, key=lambda each: each[:2])[2]


def newest_with_watermark(store: TableStore, watermark: int) -> Snapshot:
    """Return the newest snapshot whose watermark is at most ``watermark``.

    Raises SnapshotNotFoundError without such a snapshot.
    """
    ids = store.snapshots.ids()
    for number in reversed(ids[: _position(store, ids, watermark + 1)]):
        snapshot = store.snapshots.try_get(number)
        if snapshot is None or watermark_of(snapshot) is None:
            break
        return snapshot
    raise SnapshotNotFoundError(
        f"Table {store.name}: no snapshot has the watermark {watermark} or an earlier one. {_newest_text(store)}"
    )


def _position(store: TableStore, ids: Sequence[int], watermark: int) -> int:
    """Return the position of the first snapshot whose watermark is at least ``watermark``; the number of ids if none."""

    def is_reached(number: int) -> bool:
        snapshot = store.snapshots.try_get(number)  # None: it has expired, so it is one of the first.
        known = None if snapshot is None else watermark_of(snapshot)
        return known is not None and known >= watermark

    return bisect_left(ids, True, key=is_reached)


def _newest_text(store: TableStore) -> str:
    newest = store.snapshots.latest()
    if newest is None:
        return "The table has no snapshots."
    known = watermark_of(newest)
    has = "no watermark" if known is None else f"the watermark {known}"
    return f"Its newest snapshot {newest.id} has {has}."
