"""When lookups go on to the newest snapshot by themselves."""

from __future__ import annotations

from dataclasses import dataclass

from lakelsm.options import TableOptions
from lakelsm.surroundings import Surroundings


@dataclass(frozen=True, kw_only=True)
class RefreshPolicy:
    """How lookups are kept fresh.

    ``interval``: seconds between two looks for a newer snapshot (0: each lookup looks, None: none does).
    ``in_background``: lookups answer from the snapshot before meanwhile, unless that is more than ``most_pending``
    snapshots behind. ``quiet``: periods without a refresh, as `lakelsm.options` parses them. ``partition_interval``:
    seconds between two looks for the greatest partitions.
    """

    interval: float | None
    in_background: bool = False
    most_pending: int = 0
    quiet: tuple[tuple[int, int], ...] = ()
    partition_interval: float = 0.0

    @staticmethod
    def of(options: TableOptions) -> RefreshPolicy:
        """The policy that a table's options ask for."""
        return RefreshPolicy(
            interval=discovery_interval(options),
            in_background=options.lookup_refresh_async,
            most_pending=options.lookup_refresh_async_pending_snapshot_count,
            quiet=options.lookup_refresh_time_periods_blacklist,
            partition_interval=options.lookup_dynamic_partition_refresh_interval / 1000,
        )

    def is_quiet(self, surroundings: Surroundings) -> bool:
        """Whether the local clock shows a time at which nothing is refreshed."""
        if not self.quiet:
            return False
        now = surroundings.local_wall_clock(surroundings.clock())
        return any(first <= now <= last for first, last in self.quiet)


def discovery_interval(options: TableOptions) -> float:
    """Seconds between two looks for a newer snapshot, as a table's options say."""
    own = options.lookup_continuous_discovery_interval
    return (options.continuous_discovery_interval if own is None else own) / 1000
