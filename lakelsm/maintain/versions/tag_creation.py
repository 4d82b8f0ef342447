"""Automatic creation of tags after commits (``tag.automatic-creation``), by Paimon's rules.

A tag is created of the first snapshot whose time is past the end of a period. Times of snapshots ascend with their ids,
so the snapshot is found by bisection. A commit within a period that has its tag reads only the newest snapshot.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from lakelsm.environment import Environment
from lakelsm.epoch_time import utc_time, wall_time
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.versions.tag_period import Periods
from lakelsm.maintain.versions.tags import create_tag, delete_tags, replace_tag
from lakelsm.options import TagCreation
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.watermarks import watermark_of

_BATCH_PREFIX = "batch-write-"
#: The watermark of other engines at the end of a bounded stream.
_END_OF_STREAM = 2**63 - 1
#: Watermarks of other years get no tags: adding a period or a zone offset could leave the calendar.
_FIRST_YEAR, _LAST_YEAR = 200, 9998


def create_after_commit(store: TableStore, environment: Environment) -> None:
    """Create the tags of ``tag.automatic-creation``, and delete those beyond ``tag.num-retained-max``."""
    if store.options.tag_automatic_creation is not TagCreation.NONE:
        store.run_on_newest(partial(_create, store, environment), environment.sleep)


def _create(store: TableStore, environment: Environment) -> None:
    newest = store.snapshots.latest()
    if newest is None:
        return
    if store.options.tag_automatic_creation is TagCreation.BATCH:
        _create_of_batch(store, newest, environment)
    else:
        _PeriodTags(store, environment, Periods.of(store.options), newest).create()


@dataclass(frozen=True)
class _PeriodTags:
    """Creates the tags of periods that have ended since the newest automatic tag."""

    store: TableStore
    environment: Environment
    periods: Periods
    newest: Snapshot

    def create(self) -> None:
        """Create at most one tag for each snapshot. The next snapshot may get that of the next period."""
        known = self._known()
        last = max(known, default=None)
        first = 1 if last is None else self.store.tags.get(known[last]).snapshot.id + 1
        while (found := self._first_past(last, first)) is not None:
            snapshot, time = found
            ended = self.periods.last_ended(time)
            if last is not None and self.store.options.tag_automatic_completion:
                ended = last + self.periods.length
            name = self.periods.name(ended)
            create_tag(self.store, name, snapshot, if_not_exists=True, environment=self.environment)
            last, first = ended, snapshot.id + 1
        self._delete_oldest()

    def _known(self) -> dict[datetime, str]:
        """Return the automatic tags by their periods."""
        found = ((self.periods.period_of(name), name) for name in self.store.tags.names())
        return {period: name for period, name in found if period is not None}

    def _first_past(self, last: datetime | None, first: int) -> tuple[Snapshot, datetime] | None:
        """Return the first snapshot, from id ``first`` on, past the end of the period after ``last``; and its time."""
        if self.newest.id < first or self._past(self.newest, last) is None:
            return None
        ids = [number for number in self.store.snapshots.ids() if first <= number <= self.newest.id]
        start = bisect_left(ids, True, key=lambda number: self._past(self._snapshot(number), last) is not None)
        for number in ids[start:]:
            snapshot = self._snapshot(number)
            time = self._past(snapshot, last)
            if snapshot is not None and time is not None:
                return snapshot, time
        return None

    def _snapshot(self, number: int) -> Snapshot | None:
        return self.newest if number == self.newest.id else self.store.snapshots.try_get(number)

    def _past(self, snapshot: Snapshot | None, last: datetime | None) -> datetime | None:
        """Return the time of a snapshot if it is past the end of the period after ``last``, else None."""
        time = None if snapshot is None else self._time(snapshot)
        if time is None or last is None:
            return time
        delay = timedelta(milliseconds=self.store.options.tag_creation_delay)
        # The tag of a period is created when the period has ended: two lengths after the start of the last one.
        return time if time - last >= 2 * self.periods.length + delay else None

    def _time(self, snapshot: Snapshot) -> datetime | None:
        options = self.store.options
        if options.tag_automatic_creation is TagCreation.PROCESS_TIME:
            return process_time(self.store, snapshot, self.environment)
        watermark = watermark_of(snapshot)
        if watermark is None or watermark == _END_OF_STREAM:
            return None
        moment = utc_time(watermark, f"The watermark of snapshot {snapshot.id}")
        if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
            return None
        return moment.astimezone(options.sink_watermark_time_zone).replace(tzinfo=None)

    def _delete_oldest(self) -> None:
        """Delete the oldest automatic tags beyond ``tag.num-retained-max``."""
        max_tags = self.store.options.tag_num_retained_max
        if max_tags is not None:
            known = self._known()
            if len(known) > max_tags:
                delete_tags(self.store, [known[period] for period in sorted(known)[: len(known) - max_tags]])


def process_time(store: TableStore, snapshot: Snapshot, environment: Environment) -> datetime:
    """Return the wall clock time of a commit, in the zone of ``sink.process-time-zone``."""
    zone = store.options.sink_process_time_zone
    if zone is None:
        return wall_time(environment.local_wall_clock(snapshot.time_millis), f"Snapshot {snapshot.id}")
    return utc_time(snapshot.time_millis, f"Snapshot {snapshot.id}").astimezone(zone).replace(tzinfo=None)


def _create_of_batch(store: TableStore, newest: Snapshot, environment: Environment) -> None:
    """Create the batch tag of the newest snapshot, or move an existing one of this name to it."""
    given = store.options.tag_batch_customized_name
    name = given or f"{_BATCH_PREFIX}{process_time(store, newest, environment):%Y-%m-%d}"
    if store.tags.try_get(name) is None:
        create_tag(store, name, newest, if_not_exists=True, environment=environment)
    else:
        replace_tag(store, name, newest, environment=environment)
    max_tags = store.options.tag_num_retained_max
    if max_tags is not None:
        tags = store.tags.all().items()
        own = [(tag.snapshot.id, known) for known, tag in tags if known.startswith(_BATCH_PREFIX) or known == given]
        if len(own) > max_tags:
            delete_tags(store, [known for _, known in sorted(own)[: len(own) - max_tags]])
