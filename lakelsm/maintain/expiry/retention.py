"""Which snapshots and long-lived changelogs are kept: numbers, ages, consumers and the limit of a run, as in Paimon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from lakelsm.epoch_time import bound_time
from lakelsm.errors import InvalidInputError
from lakelsm.options import TableOptions

#: A number of snapshots that no table has: `snapshot.num-retained.max` by default.
UNLIMITED = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Retention:
    """The newest ``least`` stay, no more than ``most`` do, and between the two what is not ``older_than``.

    ``older_than`` is in epoch millis. One run takes ``limit`` at most.
    """

    least: int
    most: int
    older_than: int
    limit: int

    @property
    def age_bound(self) -> datetime | None:
        """``older_than`` in UTC; None where numbers alone decide."""
        return bound_time(self.older_than) if self.least < self.most else None


@dataclass(frozen=True)
class Kept:
    """``first`` is the id of the oldest that is kept, and ``held_by`` is what keeps it besides numbers and ages."""

    first: int
    held_by: tuple[str, ...] = ()


def snapshot_retention(options: TableOptions, now: int) -> Retention:
    """The retention of snapshots in a table's options. Raises InvalidInputError if the maximum is below the minimum."""
    least, most = options.snapshot_num_retained_min, options.snapshot_num_retained_max
    _check("snapshot", least, most)
    return Retention(
        least=least,
        most=most,
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
    """The arguments of a call, with the table's options as defaults.

    A call with a number to retain and without an age retains exactly these.
    """
    kept = snapshot_retention(options, now)
    least = kept.least if retain_last is None else retain_last
    most = max(kept.most, least) if retain_max is None else retain_max
    if retain_max is not None and retain_last is None:
        least = min(least, retain_max)
    if retain_max is None and retain_last is not None and older_than is None:
        most = retain_last
    if most < least:
        raise InvalidInputError(f"retain_max is {most}; it must not be less than retain_last, which is {least}.")
    return Retention(
        least=least,
        most=most,
        older_than=kept.older_than if older_than is None else older_than,
        limit=kept.limit if max_deletes is None else max_deletes,
    )


def changelog_retention(options: TableOptions, now: int) -> Retention:
    """The retention of changelogs in the options; by default that of snapshots."""
    kept = snapshot_retention(options, now)
    least, most, age = (
        options.changelog_num_retained_min,
        options.changelog_num_retained_max,
        options.changelog_time_retained,
    )
    changelog = replace(
        kept,
        least=kept.least if least is None else least,
        most=kept.most if most is None else most,
        older_than=kept.older_than if age is None else now - age,
    )
    _check("changelog", changelog.least, changelog.most)
    return changelog


def outlives_snapshots(options: TableOptions) -> bool:
    """Whether changelogs are kept longer than snapshots: in number or in age."""
    snapshots, changelogs = snapshot_retention(options, 0), changelog_retention(options, 0)
    return (
        changelogs.most > snapshots.most
        or changelogs.least > snapshots.least
        or changelogs.older_than < snapshots.older_than
    )


def first_kept(
    retention: Retention,
    earliest: int,
    latest: int,
    consumers: Mapping[str, int],
    time_of: Callable[[int], int | None],
) -> Kept:
    """The oldest of the ids ``earliest`` to ``latest`` that stays.

    ``time_of`` gives the epoch millis until which an id counts as new (None: deleted), ``consumers`` the id that each
    still has to read.
    """
    end = max(latest - retention.least + 1, earliest)
    held: tuple[str, ...] = ()
    slowest = min(consumers.items(), key=lambda item: item[1], default=None)
    if slowest is not None and slowest[1] < end:
        end = max(slowest[1], earliest)
        held = (f"consumer {slowest[0]}, which reads snapshot {slowest[1]} next",)
    if earliest + retention.limit < end:
        end = earliest + retention.limit
        held = (limit_text(retention.limit),)
    for candidate in range(max(latest - retention.most + 1, earliest), end):
        time = time_of(candidate)
        if time is not None and time >= retention.older_than:
            return Kept(candidate)
    return Kept(end, held)


def limit_text(limit: int) -> str:
    """What is said to keep snapshots that the limit of a run left for the next."""
    return f"the limit of {limit} a run"


def _check(what: str, least: int, most: int) -> None:
    if most < least:
        raise InvalidInputError(
            f"{what}.num-retained.max is {most}; it must not be less than {what}.num-retained.min, which is {least}."
        )
