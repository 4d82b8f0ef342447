"""The retention of snapshots and long-lived changelogs, as in Paimon: number, age, consumers, the limit of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from lakelsm.epoch_time import bound_time
from lakelsm.errors import InvalidInputError
from lakelsm.options import TableOptions

#: A number of snapshots that no table reaches. The default of `snapshot.num-retained.max`.
UNLIMITED = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Limits: at least ``min_count`` and at most ``max_count`` are kept, and in between those not ``older_than``.

    ``older_than`` is in epoch millis. ``limit`` is the maximum that one run expires.
    """

    min_count: int
    max_count: int
    older_than: int
    limit: int

    @property
    def age_bound(self) -> datetime | None:
        """``older_than`` in UTC; None if only the numbers decide."""
        return bound_time(self.older_than) if self.min_count < self.max_count else None


@dataclass(frozen=True)
class KeptRange:
    """The ids that are kept, from ``first`` on. ``held_by`` names what keeps ``first``, beside numbers and ages."""

    first: int
    held_by: tuple[str, ...] = ()


def snapshot_retention(options: TableOptions, now: int) -> Retention:
    """Return the retention of snapshots by a table's options. Raises InvalidInputError if maximum < minimum."""
    min_count, max_count = options.snapshot_num_retained_min, options.snapshot_num_retained_max
    _check("snapshot", min_count, max_count)
    return Retention(
        min_count=min_count,
        max_count=max_count,
        older_than=now - options.snapshot_time_retained,
        limit=options.snapshot_expire_limit,
    )


def requested_retention(
    options: TableOptions,
    now: int,
    *,
    retain_last: int | None = None,
    retain_max: int | None = None,
    older_than: int | None = None,
    max_deletes: int | None = None,
) -> Retention:
    """Return the retention by the arguments of a call; the table's options are the defaults.

    With ``retain_last`` and without ``retain_max`` and ``older_than``, exactly ``retain_last`` snapshots are kept.
    """
    kept = snapshot_retention(options, now)
    min_count = kept.min_count if retain_last is None else retain_last
    max_count = max(kept.max_count, min_count) if retain_max is None else retain_max
    if retain_max is not None and retain_last is None:
        min_count = min(min_count, retain_max)
    if retain_max is None and retain_last is not None and older_than is None:
        max_count = retain_last
    if max_count < min_count:
        raise InvalidInputError(f"retain_max: {max_count} is less than retain_last, which is {min_count}.")
    return Retention(
        min_count=min_count,
        max_count=max_count,
        older_than=kept.older_than if older_than is None else older_than,
        limit=kept.limit if max_deletes is None else max_deletes,
    )


def changelog_retention(options: TableOptions, now: int) -> Retention:
    """Return the retention of changelogs by the options; by default that of snapshots."""
    kept = snapshot_retention(options, now)
    min_count, max_count, age = (
        options.changelog_num_retained_min,
        options.changelog_num_retained_max,
        options.changelog_time_retained,
    )
    changelog = replace(
        kept,
        min_count=kept.min_count if min_count is None else min_count,
        max_count=kept.max_count if max_count is None else max_count,
        older_than=kept.older_than if age is None else now - age,
    )
    _check("changelog", changelog.min_count, changelog.max_count)
    return changelog


def outlives_snapshots(options: TableOptions) -> bool:
    """Return whether changelogs are kept longer than snapshots, by number or by age."""
    snapshots, changelogs = snapshot_retention(options, 0), changelog_retention(options, 0)
    return (
        changelogs.max_count > snapshots.max_count
        or changelogs.min_count > snapshots.min_count
        or changelogs.older_than < snapshots.older_than
    )


def first_kept(
    retention: Retention,
    earliest: int,
    latest: int,
    consumers: Mapping[str, int],
    time_of: Callable[[int], int | None],
) -> KeptRange:
    """Return the oldest of the ids ``earliest`` to ``latest`` that is kept.

    ``time_of`` returns the epoch millis until which an id counts as new (None: deleted). ``consumers`` has the id that
    each consumer reads next.
    """
    end = max(latest - retention.min_count + 1, earliest)
    held: tuple[str, ...] = ()
    slowest = min(consumers.items(), key=lambda item: item[1], default=None)
    if slowest is not None and slowest[1] < end:
        end = max(slowest[1], earliest)
        held = (f"consumer {slowest[0]}, which reads snapshot {slowest[1]} next",)
    if earliest + retention.limit < end:
        end = earliest + retention.limit
        held = (limit_text(retention.limit),)
    for candidate in range(max(latest - retention.max_count + 1, earliest), end):
        time = time_of(candidate)
        if time is not None and time >= retention.older_than:
            return KeptRange(candidate)
    return KeptRange(end, held)


def limit_text(limit: int) -> str:
    """Return the text in ``held_by`` for snapshots that the limit of a run leaves to the next run."""
    return f"the limit of {limit} a run"


def _check(what: str, min_count: int, max_count: int) -> None:
    if max_count < min_count:
        raise InvalidInputError(
            f"option '{what}.num-retained.max': {max_count} is less than '{what}.num-retained.min', which is {min_count}."
        )
